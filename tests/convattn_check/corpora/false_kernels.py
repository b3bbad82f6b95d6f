"""Falsehoods about one kernel, about two layers, and about quadratic heads of one sharpness."""

from fractions import Fraction

import certificate_builder as build
from certificate_cases import drop, put

from corpora.entry import falsehoods, swap


def far_unread(body):
    body["unread"], body["tokens_per_side"] = [0], [2]


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


def opposite_values(body):
    """All values negated: what cancels still cancels."""
    for item in body["values"]["entries"]:
        item[2] = str(-Fraction(item[2]))


def negative_head(body):
    """The uniform head and its values, both negated: what the heads put is the same."""
    body["attention"][3][3] = "-1"
    for item in body["values"]["entries"][3:]:
        item[2] = "1"


def rank_one(body):
    """The kernel (1, 1, 1), two heads: no one can say from this that one head errs."""
    body.update(out_channels=1, kernel=[1, 1, 1], error="0", thresholds=["0", "0"])
    body["attention"][0] = ["1", "1", "1", "1"]


def no_third_tap(body):
    """F has rank 2: two heads have no bound above 0."""
    body["kernel"][-1] = 0
    body["thresholds"], body["error"] = ["3999999/1000000", "0"], "4"


def zero_kernel(body):
    body["kernel"], body["values"]["entries"] = [0] * 9, []
    body["error"], body["thresholds"] = "0", ["0", "0"]


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


def seen_from_the_middle(body):
    """Nine tokens, seven heads: only the first and the last token leave seven keys free."""
    body.update(tokens=9, heads=7, places=[[8, 0], [0, 2], [1, 2]])


HEADS = [
    ("unread-is-read", "two_masks", far_unread, "unread",
     "the convolution reads the token at [0]", "at the shift 0 both channels read something"),
    ("unread-by-sign-only", "mixed_sign", put(["unread"], [1]), "unread",
     "the convolution reads the token at [1]", "the tap there is -1, not 0"),
    ("minor-singular", "two_masks", singular, "determinant", "and not 0",
     "the same row twice: rank 2 is not shown"),
    ("minor-sign", "two_masks", put(["determinant"], 2), "determinant",
     "determinant 2, expected that of the minor, -2", "the determinant is -2"),
    ("uniform-weight-missing", "two_masks", put(["attention", 0, 3], "0"), "realizable",
     "u = 0, expected c >= 0 and u > 0", "a head without a uniform part is a limit"),
    ("weight-negative", "two_masks", put(["attention", 1, 1], "-1"), "realizable",
     "min c = -1", "a negative weight at finite scores"),
    ("uniform-weight-negative", "box_of_patches", negative_head, "realizable",
     "head 3 has min c = 0, u = -1", "a head of negative weights, whose map is turned as well"),
    ("uniform-weight-doubled", "two_masks", put(["attention", 0, 3], "2"), "identity",
     "at u the heads put", "what the heads put on all keys no longer cancels"),
    ("weight-doubled", "two_masks", put(["attention", 0, 0], "2"), "identity", "at (-1,)",
     "one head attends twice as much to the token before"),
    ("kernel-of-another-layer", "two_masks", put(["kernel", 0], 2), "identity",
     "at (1,) the heads put 0, expected 1",
     "the heads belong to a kernel with 1 there"),
    ("value-halved", "two_masks", put(["values", "entries", 0, 2], "1/4"), "identity",
     "expected 1", "half of what the first head contributes"),
    ("value-missing", "two_masks", drop(["values", "entries", 2]), "identity", "expected",
     "one coefficient is left out"),
    ("values-cancel-by-sign-only", "two_masks", opposite_values, "identity",
     "the heads put -1, expected 1", "what is to cancel cancels; the layer is minus the kernel's"),
    ("values-by-lagrange", "two_masks", put(["values"], {"family": "lagrange", "master": [1],
     "denominators": []}), "values", "'lagrange' came with attention 'given'",
     "weights that are given are no powers"),
    ("image-too-small", "two_masks", put(["tokens_per_side"], [2]), "tokens", "expected [3]",
     "on two tokens the shift 2 does not occur"),
    ("far-offset-not-seen", "mixed_sign", corners_unseen, "tokens", "expected [3]",
     "with z > 0 all offsets must occur, and one is 2"),
    ("combination-of-mixed-sign", "two_masks", put(["limit", "combination"], ["0", "1"]), "limit",
     "the combination has the least entry -1", "(1, 0, -1) is not nonnegative"),
    ("combination-zero", "two_masks", put(["limit", "combination"], ["0", "0"]), "limit",
     "and not all 0", "0 is nonnegative, and no row of attention"),
    ("combination-where-there-is-none", "mixed_sign", put(["limit"], {"combination": ["1"]}),
     "limit", "the combination has the least entry -1", "in the limit two heads are needed here"),
    ("positive-where-there-is-none", "two_masks", put(["limit"], {"positive": ["1", "1", "1"]}),
     "limit", "expected above 0, and F z = 0", "(1, 2, 1)·(1, 1, 1) = 4"),
    ("positive-with-a-zero", "mixed_sign", put(["limit", "positive"], ["1", "0", "1"]), "limit",
     "positive has the least entry 0", "z must be positive at all offsets"),
    ("positive-with-both-signs", "mixed_sign", put(["limit", "positive"], ["-1", "1", "-1"]),
     "limit", "positive has the least entry -1", "z must be positive at all offsets"),
    ("positive-off-by-one", "mixed_sign", put(["limit", "positive"], ["1", "1", "2"]), "limit",
     "and F z = 0", "(1, 0, -1)·(1, 1, 2) = -1"),
]  # fmt: skip
NEAR = [
    ("error-too-small", "two_of_three", put(["error"], "4"), "error", "error 4, expected 5",
     "the two taps left out have 2² + 1²"),
    ("error-too-large", "two_of_three", put(["error"], "5000001/1000000"), "error",
     "error 5000001/1000000, expected 5", "the distance is 5; what is stated is within the slack"),
    ("error-not-squared", "two_of_three", put(["error"], "3"), "error", "error 3, expected 5",
     "2 + 1 instead of 2² + 1²"),
    ("too-far-from-the-bound", "two_of_three", put(["thresholds"], ["3", "1/2"]), "error",
     "at most one part in a million above 7/2", "the bound shown is far below the error"),
    ("threshold-above-an-eigenvalue", "two_of_three", put(["thresholds"], ["5", "1/2"]),
     "inertia", "2 of 3 eigenvalues of G lie below thresholds[0]", "the eigenvalues are 9, 4, 1"),
    ("threshold-on-an-eigenvalue", "two_of_three", put(["thresholds"], ["4", "1/2"]), "inertia",
     "a leading minor of G - 4 I is 0", "at an eigenvalue the signs of the minors tell nothing"),
    ("threshold-above-the-last", "two_of_three", put(["thresholds"], ["7/2", "3/2"]), "inertia",
     "1 of 3 eigenvalues of G lie below thresholds[1]", "no eigenvalue but 1 is the last"),
    ("threshold-counted-twice", "two_of_three", put(["thresholds"], ["5/2", "5/2"]), "inertia",
     "lie below thresholds[1]", "the right sum from two thresholds, one of which is no bound"),
    ("thresholds-rising", "two_of_three", put(["thresholds"], ["1", "4"]), "inertia",
     "not in falling order", "the eigenvalues fall"),
    ("threshold-negative", "two_of_three", put(["thresholds"], ["4", "-1"]), "inertia",
     "or one is negative", "G has no negative eigenvalues"),
    ("beyond-the-offsets", "two_of_three", put(["values", "entries", 1, 2], "-2"), "identity",
     "the heads together attend to keys beyond the offsets", "the uniform parts do not cancel"),
    ("more-heads-than-offsets", "two_of_three", four_heads, "heads", "4 heads for 3 offsets",
     "with as many heads as offsets and one there is no error"),
    ("error-rounded", "box_in_part", put(["error"], "438447187/1000000000"), "error",
     "error 438447187/1000000000, expected", "a decimal near the distance is not the distance"),
    ("threshold-rounded-up", "box_in_part", put(["thresholds"], ["27403/62500"]), "inertia",
     "lie below thresholds[0]",
     "(5 - √17)/2 = 0.4384471… is less than 0.438448"),
]  # fmt: skip
EMPTY = [
    ("rank-one-in-two-heads", "two_of_three", rank_one, "inertia",
     "the thresholds are all 0: nothing shows that 1 heads err", "a box takes one head"),
    ("zero-kernel", "two_of_three", zero_kernel, "inertia", "nothing shows that 1 heads err",
     "the zero kernel takes no head"),
]  # fmt: skip
LAYERS = [
    ("gain-of-one-layer", "two_layers", gain_of_one_layer, "identity", "expected",
     "the leak of layer 1 through layer 2 is forgotten"),
    ("block-not-written", "two_layers", put(["first", "maps", 0, 0], "0"), "identity",
     "times, expected 1", "the first head writes nothing"),
    ("block-written-by-another", "two_layers", swap(["first", "maps"], 0, 1), "identity",
     "expected", "two heads of layer 1 write into each other's blocks"),
    ("map-of-another-offset", "two_layers", put(["second", "maps", 0, 2], 1), "identity",
     "expected", "the first head of layer 2 uses the map of the second offset"),
    ("leak-of-another-network", "two_layers", put(["leak"], "1/2"), "identity", "expected",
     "the gains belong to the leak 1/3"),
    ("finite-gains-in-the-limit", "two_layers", put(["leak"], "0"), "identity", "expected",
     "without a leak there is nothing to take back"),
    ("another-image", "two_layers", put(["image"], [3, 2]), "identity", "expected",
     "the last head's gain depends on the number of tokens"),
    ("no-margin", "two_layers", put(["margin"], [[0, 0], [1, 1]]), "identity", "expected",
     "the gain belongs to an image with a margin"),
    ("margin-too-narrow", "two_layers", put(["margin"], [[1, 1], [0, 1]]), "attention",
     "and there is no key", "a target beyond the margin"),
    ("ring-too-narrow", "two_layers", put(["first", "ring"], [[0, 1], [0, 0]]), "attention",
     "of first looks at", "a target beyond the ring of layer 1"),
    ("layers-exchanged", "two_layers", layers_exchanged, "attention", "and there is no key",
     "layer 1 moves along the second axis, where it has no ring"),
    ("leak-one", "two_layers", put(["leak"], "1"), "attention", "leak is 1",
     "all heads are uniform"),
    ("leak-above-one", build.two_layers(leak="3/2"), None, "attention", "leak is 3/2",
     "the target has a negative weight; the gains are right for it"),
    ("leak-negative", "two_layers", put(["leak"], "-1/3"), "attention", "leak is -1/3",
     "negative weights"),
]  # fmt: skip
BARRIER = [
    ("offset-behind-the-first", "exponentials", put(["places", 0], [0, 2]), "places",
     "from the token 0 of 5 the offset -1 is seen", "the first token has nothing behind it"),
    ("key-in-reach", "exponentials", put(["places", 2], [0, 1]), "places",
     "this is wrong; the offsets are [-1, 0, 1]", "the token 0 reads the key 1"),
    ("keys-beyond-the-line", "exponentials", put(["places", 2], [0, 3]), "places",
     "the 3 keys from 3", "three keys from 3 on are more than there are"),
    ("line-too-short", "exponentials", put(["tokens"], 4), "heads", "tokens - reach - 1 heads",
     "on four tokens two keys are out of reach, not three"),
    ("heads-as-many-as-tokens-less-one", "exponentials", put(["heads"], 4), "heads",
     "tokens - reach - 1 heads", "four heads have no four keys out of reach"),
    ("seen-from-the-middle", "exponentials", seen_from_the_middle, "places",
     "from the token 1 of 9 the offset 1 is seen, and the 7 keys from 2",
     "the keys 2 to 8 are free from the token 0; the token 1 reads the key 2"),
    ("token-beyond-the-line", "exponentials", put(["places", 2], [0, 5]), "range",
     "a place is 5, expected 0 to 4", "there are five tokens"),
    ("query-beyond-the-line", "exponentials", put(["places", 0], [5, 0]), "range",
     "a place is 5, expected 0 to 4", "there is no sixth token that looks back"),
    ("offset-ahead-of-the-last", "exponentials", put(["places", 2], [4, 0]), "places",
     "from the token 4 of 5 the offset 1 is seen", "the last token has nothing after it"),
    ("offset-far-ahead-of-the-last", build.exponentials(5), put(["places", 4], [4, 0]), "places",
     "from the token 4 of 5 the offset 2 is seen", "the last token has nothing after it"),
]  # fmt: skip
ENTRIES = [
    *falsehoods(HEADS),
    *falsehoods(NEAR),
    *falsehoods(EMPTY, "vacuous"),
    *falsehoods(LAYERS),
    *falsehoods(BARRIER),
]
