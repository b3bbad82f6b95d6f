"""Falsehoods about one kernel, about two layers, and about quadratic heads of one sharpness."""

from fractions import Fraction

import certificate_builder as build
from certificate_cases import all_at_once, changed, drop, put, swap, update

from corpora.entry import altered, named
from corpora.false_attention import signs_turned


def singular(body):
    body["rows"][1], body["determinant"] = body["rows"][0], 0


def corners_unseen(body):
    """The kernel (0, 1, 0, 0, -1): on two tokens nobody sees the -1."""
    body.update(
        kernel_size=[5],
        kernel=[0, 1, 0, 0, -1],
        attention=[["0", "1", "0", "0", "0", "1"], ["0", "0", "0", "0", "1", "1"]],
        limit={"positive": ["1"] * 5},
    )
    body["values"]["entries"] = [[0, 1, "1"], [1, 1, "-1"]]


def negative_head(body):
    """The uniform head and its values, both negated: what the heads put is the same."""
    body["attention"][3][3] = "-1"
    for item in body["values"]["entries"][3:]:
        item[2] = "1"


# The kernel (1, 1, 1), two heads: no one can say from this that one head errs.
rank_one = all_at_once(
    update(out_channels=1, kernel=[1, 1, 1], error="0", thresholds=["0", "0"]),
    put(["attention", 0], ["1"] * 4),
)
zero_kernel = all_at_once(
    update(kernel=[0] * 9, error="0", thresholds=["0", "0"]), put(["values", "entries"], [])
)


def four_heads(body):
    body["heads"] = 4
    body["attention"] += [["0", "0", "1", "1"]] * 2


def gain_of_one_layer(body):
    """The uniform head as if layer 2 stood alone: it takes back its own leak only."""
    leak = Fraction(body["leak"])
    for entry in body["second"]["maps"]:
        if entry[0] == 3:
            entry[3] = str(-leak / (1 - leak))


def layers_exchanged(body):
    for target in body["first"]["targets"]:
        target.reverse()


OTHERS = {
    "leak-above-one": build.two_layers(leak="3/2"),
    "offset-far-ahead-of-the-last": changed(build.exponentials(5), put(["places", 4], [4, 0])),
}
CHANGES = {
    "two_masks": {
        "unread-is-read": update(unread=[0], tokens_per_side=[2]),
        "minor-singular": singular,
        "minor-sign": put(["determinant"], 2),
        "uniform-weight-missing": put(["attention", 0, 3], "0"),
        "weight-negative": put(["attention", 1, 1], "-1"),
        "uniform-weight-doubled": put(["attention", 0, 3], "2"),
        "weight-doubled": put(["attention", 0, 0], "2"),
        "kernel-of-another-layer": put(["kernel", 0], 2),
        "value-halved": put(["values", "entries", 0, 2], "1/4"),
        "value-missing": drop(["values", "entries", 2]),
        "values-cancel-by-sign-only": signs_turned,
        "values-by-lagrange": put(
            ["values"], {"family": "lagrange", "master": [1], "denominators": []}
        ),
        "image-too-small": put(["tokens_per_side"], [2]),
        "combination-of-mixed-sign": put(["limit", "combination"], ["0", "1"]),
        "combination-zero": put(["limit", "combination"], ["0", "0"]),
        "positive-where-there-is-none": put(["limit"], {"positive": ["1", "1", "1"]}),
    },
    "mixed_sign": {
        "unread-by-sign-only": put(["unread"], [1]),
        "far-offset-not-seen": corners_unseen,
        "combination-where-there-is-none": put(["limit"], {"combination": ["1"]}),
        "positive-with-a-zero": put(["limit", "positive"], ["1", "0", "1"]),
        "positive-with-both-signs": put(["limit", "positive"], ["-1", "1", "-1"]),
        "positive-off-by-one": put(["limit", "positive"], ["1", "1", "2"]),
    },
    "box_of_patches": {"uniform-weight-negative": negative_head},
    "two_of_three": {
        "error-too-small": put(["error"], "4"),
        "error-too-large": put(["error"], "5000001/1000000"),
        "error-not-squared": put(["error"], "3"),
        "too-far-from-the-bound": put(["thresholds"], ["3", "1/2"]),
        "threshold-above-an-eigenvalue": put(["thresholds"], ["5", "1/2"]),
        "threshold-on-an-eigenvalue": put(["thresholds"], ["4", "1/2"]),
        "threshold-above-the-last": put(["thresholds"], ["7/2", "3/2"]),
        "threshold-counted-twice": put(["thresholds"], ["5/2", "5/2"]),
        "thresholds-rising": put(["thresholds"], ["1", "4"]),
        "threshold-negative": put(["thresholds"], ["4", "-1"]),
        "beyond-the-offsets": put(["values", "entries", 1, 2], "-2"),
        "more-heads-than-offsets": four_heads,
        "rank-one-in-two-heads": rank_one,
        "zero-kernel": zero_kernel,
    },
    "box_in_part": {
        "error-rounded": put(["error"], "438447187/1000000000"),
        "threshold-rounded-up": put(["thresholds"], ["27403/62500"]),
    },
    "two_layers": {
        "gain-of-one-layer": gain_of_one_layer,
        "block-not-written": put(["first", "maps", 0, 0], "0"),
        "block-written-by-another": swap(["first", "maps"], 0, 1),
        "map-of-another-offset": put(["second", "maps", 0, 2], 1),
        "leak-of-another-network": put(["leak"], "1/2"),
        "finite-gains-in-the-limit": put(["leak"], "0"),
        "another-image": put(["image"], [3, 2]),
        "no-margin": put(["margin"], [[0, 0], [1, 1]]),
        "margin-too-narrow": put(["margin"], [[1, 1], [0, 1]]),
        "ring-too-narrow": put(["first", "ring"], [[0, 1], [0, 0]]),
        "layers-exchanged": layers_exchanged,
        "leak-one": put(["leak"], "1"),
        "leak-negative": put(["leak"], "-1/3"),
    },
    "exponentials": {
        "offset-behind-the-first": put(["places", 0], [0, 2]),
        "key-in-reach": put(["places", 2], [0, 1]),
        "keys-beyond-the-line": put(["places", 2], [0, 3]),
        "line-too-short": put(["tokens"], 4),
        "heads-as-many-as-tokens-less-one": put(["heads"], 4),
        # Seven heads: only the first and the last token leave seven keys free.
        "seen-from-the-middle": update(tokens=9, heads=7, places=[[8, 0], [0, 2], [1, 2]]),
        "token-beyond-the-line": put(["places", 2], [0, 5]),
        "query-beyond-the-line": put(["places", 0], [5, 0]),
        "offset-ahead-of-the-last": put(["places", 2], [4, 0]),
    },
}
CERTIFICATES = altered(CHANGES) | named(OTHERS)
