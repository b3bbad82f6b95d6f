"""Rows as bench.py writes them, with times that are made up."""

from benchmarks.rows import Row


def row(contestant, backward, case="quadratic", side=16, features=400, **fields):
    turns = list(backward) if isinstance(backward, (list, tuple)) else [backward] * 7
    return Row(
        case=case,
        side=side,
        features=features,
        batch=1,
        contestant=contestant,
        forward=[seconds / 4 for seconds in turns],
        backward=turns,
        **fields,
    )


def left_out(contestant, reason, case="quadratic", side=16, features=400):
    return Row(case, side, features, 1, contestant, skipped=reason)
