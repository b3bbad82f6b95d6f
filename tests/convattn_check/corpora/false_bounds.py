"""Falsehoods about how many heads are necessary, and how many of a dimension suffice."""

from certificate_cases import CASES, all_at_once, changed, put, swap, update
from kernel_cases import lower_bound

from corpora.entry import altered, named

CORNER = [-1, -1]


def same_row(body):
    body["rows"][1], body["determinant"] = body["rows"][0], 0


def sum_of_two_rows(body):
    """Channel 2 reads what the channels 0 and 1 read: nine rows, eight independent."""
    for tap in range(9):
        entries = body["kernel"][9 * tap : 9 * tap + 9]
        body["kernel"][9 * tap + 2] = entries[0] + entries[1]
    body["determinant"] = 0


def outputs_before_inputs():
    """Four taps into the four pairs of channels, the pairs written (out, in): HWOI."""
    kernel = [tap + 1 if tap == pair else 0 for tap in range(4) for pair in range(4)]
    rows = [[0, 0, 0, 0, pair % 2, pair // 2] for pair in range(4)]
    columns = [[0, 0], [0, 1], [1, 0], [1, 1]]
    certificate = lower_bound("S.content", (2, 2), (1, 1), (2, 2), kernel, rows, columns)
    return changed(certificate, put(["determinant"], 24))


# body["kernel"]: taps -1, 0, 1, each (in 0 to out 0, 0 to 1, 1 to 0, 1 to 1)
# heads of "places": (S_-1 with pixels 2 and 1), (S_-1 + S_0 with 1), (S_1/2 with 0), two at S_0
CHANGES = {
    "patch_bound": {
        "determinant-sign": put(["determinant"], -CASES["patch_bound"]["body"]["determinant"]),
        "rows-swapped": swap(["rows"], 0, 1),
        "row-repeated": same_row,
        "column-repeated": all_at_once(put(["columns", 1], CORNER), put(["determinant"], 0)),
        "column-out-of-reach": all_at_once(
            put(["columns", 0], [-7, -1]), put(["determinant"], 0), put(["tokens_per_side"], [8, 2])
        ),
        "column-off-by-one": put(["columns", 0], [-1, 0]),
        "column-of-pixels": put(["columns", 0], [-3, -3]),
        "kernel-tap-changed": put(["kernel", 4], 6),
        "pixel-off-by-one": put(["rows", 0, 2], 1),
        "channel-that-is-not": put(["rows", 0, 5], 1),
        "image-too-small": put(["tokens_per_side"], [1, 2]),
        "image-larger-than-needed": put(["tokens_per_side"], [2, 3]),
        "too-few-for-the-claim": put(["heads"], 8),
        "one-more-than-the-offsets": put(["heads"], 10),
    },
    "pixel_bound": {
        "rows-dependent": sum_of_two_rows,
        "kernel-zero": put(["kernel"], [0] * 81),
        "kernel-of-rank-one": update(kernel=[1] * 81, determinant=0),
        "channel-of-another-tap": put(["rows", 0, 4], 1),
        "heads-beyond-the-bound": put(["heads"], 129),
        "one-more-than-the-channels": put(["heads"], 10),
    },
    "line_bound": {"one-more-than-the-rows": put(["heads"], 4)},
    "narrow_heads": {
        "necessary-one-more": put(["necessary"], 5),
        "necessary-one-less": put(["necessary"], 3),
        "sufficient-one-less": put(["sufficient"], 3),
        "sufficient-one-more": put(["sufficient"], 5),
        "finite-without-the-uniform-head": update(regime="finite", tokens_per_side=[3]),
        "dimension-of-another-head": put(["head_dimension"], 1),
        "centre-singular": put(["kernel", 4], 0),
        "centre-not-triangular": put(["kernel", 6], 1),
        "centre-not-triangular-by-a-negative": put(["kernel", 6], -1),
        "diagonal-beside-the-centre": put(["kernel", 0], 1),
        "lower-triangle-beside-the-centre": put(["kernel", 10], 1),
        "centre-among-the-columns": put(["columns", 0], [0]),
        "dimension-rows-swapped": lambda body: body["rows"].reverse(),
        "dimension-minor-zero": update(kernel=[0] * 4 + [1, 4, 0, 2] + [0] * 4, determinant=0),
        "dimension-kernel-changed": put(["kernel", 1], 4),
        "dimension-image-too-small": put(["tokens_per_side"], [1]),
    },
    "narrow_heads_finite": {
        "limit-with-the-uniform-head": update(regime="limit", tokens_per_side=[2]),
        "no-token-out-of-reach": put(["tokens_per_side"], [2]),
    },
    "narrow_heads_many": {"sylvester-forgotten": put(["necessary"], 9)},
    "narrow_heads_unlike": {
        "unlike-channels-not-triangular": put(["kernel", 0], 1),
        "unlike-channels-sufficient": put(["sufficient"], 7),
    },
    "places": {
        "coordinates-too-many": put(["heads", 2, "coordinates"], [0, 1, 2]),
        "coordinate-twice": put(["heads", 0, "coordinates"], [2, 2]),
        "coordinate-none": put(["heads", 1, "coordinates"], []),
        "coordinate-that-is-not": put(["heads", 0, "coordinates"], [2, 3]),
        "offset-not-reached": put(["heads", 0, "coordinates"], [1]),
        "two-heads-alike": put(["heads", 0, "weights", 1], "1"),
        "one-place-for-two": put(["heads", 1, "coordinates"], [2]),
        "attends-elsewhere": put(["heads", 2, "weights"], ["0", "1", "0"]),
        "leak-not-taken-back": put(["heads", 3, "coordinates"], [0]),
        "coordinate-held-by-nobody": all_at_once(
            put(["heads", 0, "coordinates"], [2]), put(["heads", 1, "coordinates"], [2])
        ),
        "channels-more-than-held": put(["in_channels"], 3),
        "weight-negative": put(["heads", 0, "weights", 0], "-1"),
    },
    "places_by_output": {"outputs-as-inputs": update(in_channels=1, out_channels=1)},
    "places_limit": {
        "limit-heads-as-finite": put(["regime"], "finite"),
        "limit-own-offset-lost": put(["heads", 0, "coordinates"], [1]),
        "limit-own-offset-ahead-lost": put(["heads", 1, "coordinates"], [1]),
        "limit-nothing-cancels": put(["heads", 2, "coordinates"], [0]),
        "limit-weight-one-half": put(["heads", 0, "weights", 0], "1/2"),
        "limit-two-own-offsets": put(["heads", 0, "weights", 2], "1"),
        "limit-centre-as-own": put(["heads", 2, "weights", 1], "1"),
    },
}
CERTIFICATES = altered(CHANGES) | named({"channels-exchanged": outputs_before_inputs()})
