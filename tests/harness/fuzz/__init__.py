"""Fuzzing with structure: files of every kind that undrift reads, changed at random.

A case is a target (a kind of file) and a seed. Clean files are copied, something in them is
changed, sometimes bytes and sometimes what the format is made of, and the reader is called. It may
refuse with an `InputError` of one sentence; it may give the answer of the clean files, where the
change did not matter; and where a format has no checksum, it may give what a plain second reading
of the changed file gives. Everything else is a finding: another exception, a warning, another
answer, more than 10 s, more than 2 GB, a file written outside the folder, a dead process.

    python -m tests.harness.torture --parts files --cases 2000 --workers 2
    python -m tests.harness.torture --parts files --kinds result.json --first 17 --cases 1
"""
