"""Planted errors for S.causal."""

from proofs.plants.changes import always, given, one_more, scaled, then

# As many of them as there are, and one is another.
equal_heads = then(lambda heads: [heads[0]] * 2 + heads[2:])
# The head of the distance 0 is uniform.
without_its_target = given(lambda query, distance: (query, distance or None))
# The heads of a tap are those of the next one.
next_tap = given(lambda taps, tap, tokens: (taps + 1, tap + 1, tokens))
# M(9) at every query, and every query sees every key.
score_of_one_length = given(lambda encoding, number_of_keys: (encoding, 9))
nothing_masked = always(None)

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
