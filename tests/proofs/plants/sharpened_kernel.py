"""Planted errors for S.kernel, S.approx, S.content and S.lemma3."""

from dataclasses import replace

from proofs.plants.changes import (
    always,
    doubled_kernel,
    given,
    replaced_by,
    scaled,
    then,
    turned_kernel,
)

from convattn.bounds.layer_distance import Enclosure
from convattn_ledger.evidence.shared_map import spans_hold

one_head_fewer = then(lambda heads: replace(heads, exact=heads.rank))
half_as_far = then(lambda error: Enclosure(error.lower / 2, error.upper / 2))
# The weights are those of the basis, negative ones too.
no_shift = then(lambda result: (result[0] - result[0][-1], result[1]))
always_sobel = given(lambda name: ("sobel",))
# No candidates but the singular vectors.
first_alone = then(lambda candidates: [next(candidates)])
never_in_values = given(lambda positions, maps, query, in_values: (positions, maps, query, False))
printed_condition = replaced_by(spans_hold)
other_signs = given(lambda weights, coefficients, *args: (weights, -coefficients, *args))


@then
def no_common_head(result):
    """The common head does not take back what the shift added."""
    weights, coefficients = result
    coefficients[-1] *= 0
    return weights, coefficients


@then
def other_alternative(heads):
    """Where there is z it is said to be all ones."""
    if heads.positive is None:
        return heads
    return replace(heads, positive=(1,) * len(heads.positive))


def no_content(original):
    return lambda layer, *args: layer


HEADS = "bounds.kernel_heads.count_heads_of_kernel"
MIXTURES = "constructions.given_kernel.mixture_heads"
LAYER, MIXTURE = "given_kernel_layer", "constructions.given_kernel.mixture_layer"
LEAST_EIGENVALUE = "ledger.evidence.least_eigenvalue.least_eigenvalue"
FLOOR = "ledger.evidence.head_floor.floor_below"
APPROXIMATION = "bounds.approximation"
PLANTS = [
    ("kernel", "layers in fractions", MIXTURES, no_common_head),
    ("kernel", "layers in fractions", MIXTURES, no_shift),
    ("kernel", "alternatives of the limit", HEADS, one_head_fewer),
    ("kernel", "alternatives of the limit", HEADS, other_alternative),
    ("kernel", "towards the limit", "named_kernel", always_sobel),
    ("kernel", "towards the limit", "bounds.kernel_heads.nonnegative_vectors_span", always(True)),
    ("kernel", "rank 2, pixels: three heads", LAYER, turned_kernel),
    ("kernel", "Laplacian, P = 4: six heads", LAYER, doubled_kernel),
    ("approx", "distances in fractions", f"{APPROXIMATION}.squared_distance", half_as_far),
    ("approx", "distances in fractions", f"{APPROXIMATION}.tail_energy_bounds", scaled(4)),
    ("approx", "known singular values", f"{APPROXIMATION}.tail_energy_bounds", scaled(2)),
    ("approx", "known singular values", f"{APPROXIMATION}.tail_energy_bounds", scaled(0.5)),
    ("approx", "known singular values", f"{APPROXIMATION}.squared_distance", half_as_far),
    ("approx", "known singular values", f"{APPROXIMATION}.candidates", first_alone),
    ("approx", "errors on images", f"{APPROXIMATION}.approximate_conv", doubled_kernel),
    ("approx", "errors on images", LEAST_EIGENVALUE, scaled(1e6)),
    ("content", "one-hot layers with content", "derivative_at", scaled(2)),
    ("content", "one-hot layers with content", "add_content", no_content),
    ("content", "arbitrary attention", "exact_convolution", scaled(2)),
    ("content", "arbitrary attention", "rational_rank", always(2)),
    ("content", "positions in the values", "derivative_with_positions", never_in_values),
    ("content", "derivative on pieces of images", "derivative_at", scaled(2)),
    ("content", "derivative on pieces of images", FLOOR, scaled(1e9)),
    ("lemma3", "C20's counterexamples", "shared_map_exists", printed_condition),
    ("lemma3", "patches and pixels", "shared_map_exists", printed_condition),
    ("lemma3", "patches and pixels", "exact_convolution", scaled(2)),
    ("lemma3", "random mixtures on images", MIXTURE, other_signs),
]
