"""Falsehoods about how many heads are necessary, and how many of a dimension suffice."""

from certificate_cases import CASES, changed, put

from corpora.entry import all_at_once, falsehoods, swap, update
from corpora.kernels import lower_bound

CORNER = [-1, -1]


def finite_alone(body):
    """The regime and the image, not the heads."""
    body["regime"], body["tokens_per_side"] = "finite", [3]


def limit_alone(body):
    body["regime"], body["tokens_per_side"] = "limit", [2]


def no_shifted_map(body):
    """All but the centre is zero: the minor is, too."""
    body["kernel"] = [0, 0, 0, 0, 1, 4, 0, 2, 0, 0, 0, 0]
    body["determinant"] = 0


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


def all_kernel_ones(body):
    body["kernel"], body["determinant"] = [1] * 81, 0


def nobody(body):
    """No head holds pixel 1."""
    body["heads"][0]["coordinates"], body["heads"][1]["coordinates"] = [2], [2]


LOWER = [
    ("determinant-sign", "patch_bound", put(["determinant"],
     -CASES["patch_bound"]["body"]["determinant"]), "determinant", "expected that of the minor",
     "the determinant with the other sign"),
    ("rows-swapped", "patch_bound", swap(["rows"], 0, 1), "determinant",
     "determinant -362880, expected that of the minor, 362880",
     "two rows have changed places, the sign has not"),
    ("row-repeated", "patch_bound", same_row, "determinant", "expected that of the minor, 0",
     "a row twice: the minor is singular, and nothing follows"),
    ("column-repeated", "patch_bound", all_at_once(put(["columns", 1], CORNER),
     put(["determinant"], 0)), "determinant", "minor, 0, and not 0",
     "an offset twice: eight columns under the name of nine"),
    ("rows-dependent", "pixel_bound", sum_of_two_rows, "determinant", "minor, 0, and not 0",
     "one row is the sum of two others: eight heads may do"),
    ("column-out-of-reach", "patch_bound", all_at_once(put(["columns", 0], [-7, -1]),
     put(["determinant"], 0), put(["tokens_per_side"], [8, 2])), "determinant",
     "minor, 0, and not 0", "nothing is read at (-7, -1): its column is zero"),
    ("column-off-by-one", "patch_bound", put(["columns", 0], [-1, 0]), "determinant",
     "expected that of the minor, 0", "(-1, 0) twice, the corner never"),
    ("column-of-pixels", "patch_bound", put(["columns", 0], [-3, -3]), "determinant",
     "expected that of the minor, 0", "the corner in pixels, not in tokens"),
    ("kernel-zero", "pixel_bound", put(["kernel"], [0] * 81), "determinant",
     "expected that of the minor, 0", "no head at all is the zero convolution"),
    ("kernel-of-rank-one", "pixel_bound", all_kernel_ones, "determinant", "minor, 0, and not 0",
     "a box takes one head in the limit, not nine"),
    ("kernel-tap-changed", "patch_bound", put(["kernel", 4], 6), "determinant",
     "expected that of the minor", "the determinant belongs to a kernel with 5 in the middle"),
    ("pixel-off-by-one", "patch_bound", put(["rows", 0, 2], 1), "determinant",
     "expected that of the minor", "a row reads another pixel than it says"),
    ("channel-of-another-tap", "pixel_bound", put(["rows", 0, 4], 1), "determinant",
     "expected that of the minor, 0", "channel 1 twice, channel 0 never"),
    ("channel-that-is-not", "patch_bound", put(["rows", 0, 5], 1), "range",
     "a row is 1, expected 0 to 0", "there is one channel out"),
    ("channels-exchanged", outputs_before_inputs(), None, "determinant",
     "determinant 24, expected that of the minor, -24",
     "the rows say (out, in) instead of (in, out): two have changed places"),
    ("image-too-small", "patch_bound", put(["tokens_per_side"], [1, 2]), "tokens",
     "expected [2, 2]", "on one row of tokens nobody sees an offset -1"),
    ("image-larger-than-needed", "patch_bound", put(["tokens_per_side"], [2, 3]), "tokens",
     "expected [2, 2]", "the size from which on the bound holds is another"),
    ("too-few-for-the-claim", "patch_bound", put(["heads"], 8), "heads", "needs 9 heads",
     "nine rows, eight heads"),
    ("heads-beyond-the-bound", "pixel_bound", put(["heads"], 129), "range",
     "heads is 129, expected 1 to 128", "nine taps, and more heads than the format allows"),
    ("one-more-than-the-channels", "pixel_bound", put(["heads"], 10), "heads",
     "L21.theorem5 needs min(prod K, D_in * D_out) heads", "nine taps cannot ask for ten heads"),
    ("one-more-than-the-offsets", "patch_bound", put(["heads"], 10), "heads",
     "L21.theorem6 needs 9 heads", "nine offsets cannot ask for ten heads"),
    ("one-more-than-the-rows", "line_bound", put(["heads"], 4), "heads",
     "S.heads needs min((2m+1)^axes, (2P-1)^axes * D_in * D_out) heads",
     "three rows cannot ask for four heads"),
]  # fmt: skip
# body["kernel"]: taps -1, 0, 1, each (in 0 to out 0, 0 to 1, 1 to 0, 1 to 1)
DIMENSION = [
    ("necessary-one-more", "narrow_heads", put(["necessary"], 5), "heads",
     "necessary is 5, expected 4", "one head more than is shown"),
    ("necessary-one-less", "narrow_heads", put(["necessary"], 3), "heads",
     "necessary is 3, expected 4", "not the number that follows"),
    ("sufficient-one-less", "narrow_heads", put(["sufficient"], 3), "heads",
     "sufficient is 3, expected 4", "three heads of dimension 3 are fewer than are necessary"),
    ("sufficient-one-more", "narrow_heads", put(["sufficient"], 5), "heads",
     "sufficient is 5, expected 4", "not the number that follows"),
    ("finite-without-the-uniform-head", "narrow_heads", finite_alone, "heads",
     "necessary is 4, expected 5", "the limit's numbers at finite scores"),
    ("limit-with-the-uniform-head", "narrow_heads_finite", limit_alone, "heads",
     "necessary is 5, expected 4", "at finite scores five heads are needed, in the limit four"),
    ("sylvester-forgotten", "narrow_heads_many", put(["necessary"], 9), "heads",
     "necessary is 9, expected 12", "2R/d_H is the larger of the two bounds here"),
    ("dimension-of-another-head", "narrow_heads", put(["head_dimension"], 1), "heads",
     "necessary is 4, expected 6", "heads of dimension 1, with the numbers for 3"),
    ("centre-singular", "narrow_heads", put(["kernel", 4], 0), "triangular",
     "tap (0,) has 0 from channel 0 to 0", "a zero on the diagonal of the middle tap"),
    ("centre-not-triangular", "narrow_heads", put(["kernel", 6], 1), "triangular",
     "tap (0,) has 1 from channel 1 to 0", "an entry below the diagonal of the middle tap"),
    ("centre-not-triangular-by-a-negative", "narrow_heads", put(["kernel", 6], -1), "triangular",
     "tap (0,) has -1 from channel 1 to 0", "an entry below the diagonal of the middle tap"),
    ("diagonal-beside-the-centre", "narrow_heads", put(["kernel", 0], 1), "triangular",
     "tap (-1,) has 1 from channel 0 to 0", "M_0 and M_-1 may cancel: the rank may fall"),
    ("lower-triangle-beside-the-centre", "narrow_heads", put(["kernel", 10], 1), "triangular",
     "tap (1,) has 1 from channel 1 to 0", "the sum of the maps is not triangular"),
    ("centre-among-the-columns", "narrow_heads", put(["columns", 0], [0]), "offsets",
     "the offset 0 is among the columns", "M_0 is what the other heads are to make up"),
    ("dimension-rows-swapped", "narrow_heads", lambda body: body["rows"].reverse(), "determinant",
     "expected that of the minor, -15", "two rows have changed places, the sign has not"),
    ("dimension-minor-zero", "narrow_heads", no_shifted_map, "determinant", "minor, 0, and not 0",
     "only the middle tap is not zero: no head is needed elsewhere"),
    ("dimension-kernel-changed", "narrow_heads", put(["kernel", 1], 4), "determinant",
     "expected that of the minor", "the determinant of another kernel"),
    ("dimension-image-too-small", "narrow_heads", put(["tokens_per_side"], [1]), "tokens",
     "expected [2]", "on a single token one head fewer does"),
    ("no-token-out-of-reach", "narrow_heads_finite", put(["tokens_per_side"], [2]), "tokens",
     "expected [3]", "on two tokens every key is in reach, and the finite bound has no ground"),
    ("unlike-channels-not-triangular", "narrow_heads_unlike", put(["kernel", 0], 1), "triangular",
     "tap (-1, -1) has 1 from channel 0 to 0", "a corner has an entry in the square of channels"),
    ("unlike-channels-sufficient", "narrow_heads_unlike", put(["sufficient"], 7), "heads",
     "sufficient is 7, expected", "one channel in: two heads do not hold all that is read"),
]  # fmt: skip
# heads of "places": (S_-1 with pixels 2 and 1), (S_-1 + S_0 with 1), (S_1/2 with 0), two at S_0
NARROW = [
    ("coordinates-too-many", "places", put(["heads", 2, "coordinates"], [0, 1, 2]), "coordinates",
     "heads[2] has 3 coordinates, expected 1 to 2", "three coordinates in a head of dimension 2"),
    ("coordinate-twice", "places", put(["heads", 0, "coordinates"], [2, 2]), "coordinates",
     "each once", "the same coordinate twice"),
    ("coordinate-none", "places", put(["heads", 1, "coordinates"], []), "coordinates",
     "heads[1] has 0 coordinates", "a head that holds nothing"),
    ("coordinate-that-is-not", "places", put(["heads", 0, "coordinates"], [2, 3]), "range",
     "heads[0][1] is 3, expected 0 to 2", "a token has three coordinates"),
    ("offset-not-reached", "places", put(["heads", 0, "coordinates"], [1]), "span",
     "coordinate 2", "pixel 2 of the token before is read and no head has it"),
    ("two-heads-alike", "places", put(["heads", 0, "weights", 1], "1"), "span", "coordinate 1",
     "two heads that attend alike are one"),
    ("one-place-for-two", "places", put(["heads", 1, "coordinates"], [2]), "span", "coordinate 1",
     "one head for two offsets of a coordinate"),
    ("attends-elsewhere", "places", put(["heads", 2, "weights"], ["0", "1", "0"]), "span",
     "coordinate 0", "the head for the token after looks at the token itself"),
    ("leak-not-taken-back", "places", put(["heads", 3, "coordinates"], [0]), "span",
     "coordinate 2", "no second head holds pixel 2: its uniform part stays"),
    ("coordinate-held-by-nobody", "places", nobody, "span", "coordinate 1: its heads []",
     "no head has pixel 1"),
    ("channels-more-than-held", "places", put(["in_channels"], 3), "span", "coordinate",
     "six coordinates, of which three are held"),
    ("outputs-as-inputs", "places_by_output", update(in_channels=1, out_channels=1), "span",
     "coordinate", "which output pixels hear from a token is not which input pixels are read"),
    ("limit-heads-as-finite", "places_limit", put(["regime"], "finite"), "span", "coordinate",
     "heads whose values grow like 1/ε are no heads at finite scores"),
    ("limit-own-offset-lost", "places_limit", put(["heads", 0, "coordinates"], [1]), "span",
     "coordinate 2", "pixel 2 of the token before has no head"),
    ("limit-own-offset-ahead-lost", "places_limit", put(["heads", 1, "coordinates"], [1]), "span",
     "coordinate 0", "pixel 0 of the token after has no head"),
    ("limit-nothing-cancels", "places_limit", put(["heads", 2, "coordinates"], [0]), "span",
     "coordinate 2", "no head at the token itself takes 1/ε back"),
    ("weight-negative", "places", put(["heads", 0, "weights", 0], "-1"), "weights",
     "heads[0] has a negative weight", "the logarithm of a negative weight"),
    ("limit-weight-one-half", "places_limit", put(["heads", 0, "weights", 0], "1/2"), "weights",
     "expected 1 at the head's own offset", "in the limit a head's own weight is ε, written 1"),
    ("limit-two-own-offsets", "places_limit", put(["heads", 0, "weights", 2], "1"), "weights",
     "expected 1 at the head's own offset", "two offsets of its own: nothing tells them apart"),
    ("limit-centre-as-own", "places_limit", put(["heads", 2, "weights", 1], "1"), "weights",
     "all 0 if that is the offset 0", "the token itself is everybody's, it is written as all 0"),
]  # fmt: skip
ENTRIES = [*falsehoods(LOWER), *falsehoods(DIMENSION), *falsehoods(NARROW)]
