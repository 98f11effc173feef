"""`undrift methods`: what there is to learn with."""


def methods() -> None:
    """List the methods: family, what they can do, what they keep, paper.

    returns: known classes may come back. forgets: a batch can be forgotten or revised. merges: two
    learners can become one. if set: by a setting that the method names when it refuses. Methods of
    the family recommend learn sessions of items, all others graphs.

    For example:

        undrift methods
        undrift run --method bare
    """
    from undrift.cli.console import output
    from undrift.learners.registry import METHODS, RECOMMENDERS
    from undrift.reporting.terminal import methods_table

    output().print(methods_table(METHODS[name] for name in (*METHODS, *RECOMMENDERS.names())))
