from undrift.errors import InputError, unknown_name


def test_input_error_is_a_value_error():
    assert issubclass(InputError, ValueError)


def test_unknown_name_says_the_nearest_and_prints_the_sorted_list():
    error = unknown_name("method", "ad", ["joint", "adr", "bare"])
    assert isinstance(error, InputError)
    assert str(error) == (
        "unknown method 'ad' (did you mean 'adr'?); choose one of: adr, bare, joint"
    )


def test_unknown_name_guesses_nothing_when_nothing_is_near():
    message = str(unknown_name("stream", "zzzz", ["cs-cl", "synthetic"]))
    assert message == "unknown stream 'zzzz'; choose one of: cs-cl, synthetic"


def test_unknown_name_takes_any_iterable_of_names():
    assert "choose one of: a, b" in str(unknown_name("x", "c", (n for n in "ba")))
    assert "choose one of: a, b" in str(unknown_name("x", "c", {"b": 1, "a": 2}))


def test_unknown_name_may_be_empty_and_the_message_is_one_line():
    message = str(unknown_name("plan", "", ["smoke"]))
    assert message == "unknown plan ''; choose one of: smoke"
    assert "\n" not in message
