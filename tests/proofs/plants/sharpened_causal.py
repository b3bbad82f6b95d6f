"""Planted errors for S.causal."""

from proofs.plants.changes import one_more, scaled


def equal_heads(original):
    """As many of them as there are, and one is another."""
    return lambda *args: [original(*args)[0]] * 2 + original(*args)[2:]


def without_its_target(original):
    """The head of the distance 0 is uniform."""
    return lambda query, distance: original(query, distance or None)


def next_tap(original):
    """The heads of a tap are those of the next one."""
    return lambda taps, tap, tokens: original(taps + 1, tap + 1, tokens)


def score_of_one_length(original):
    """M(9) at every query."""
    return lambda encoding, number_of_keys: original(encoding, 9)


def nothing_masked(original):
    """Every query sees every key."""
    return lambda *args: None


SCALE, MASK = "encodings.bias.BiasEncoding.scale", "operators.shifts.TokenGrid.mask"
PLANTS = [
    ("causal", "the first number that is exact", "generic_clipped", one_more),
    ("causal", "the first number that is exact", "generic_linear", one_more),
    ("causal", "the first number that is exact", "clipped", equal_heads),
    ("causal", "the layer in fractions", "exact_row", without_its_target),
    ("causal", "fixed biases", "five_heads", next_tap),
    ("causal", "the best maps", "clipped_floor", scaled(10)),
    ("causal", "the best maps", "linear_floor", scaled(10)),
    ("causal", "weights in fractions", SCALE, score_of_one_length),
    ("causal", "weights in fractions", MASK, nothing_masked),
    ("causal", "rows of images", SCALE, score_of_one_length),
    ("causal", "rows of images", MASK, nothing_masked),
]
