"""Planted errors for S.kernel, S.approx, S.content and S.lemma3."""

from dataclasses import replace

from proofs.plants.changes import always, doubled_kernel, scaled, turned_kernel

from convattn.bounds.layer_distance import Enclosure
from convattn_ledger.evidence.shared_map import spans_hold


def no_common_head(original):
    """The common head does not take back what the shift added."""

    def changed(basis):
        weights, coefficients = original(basis)
        coefficients[-1] *= 0
        return weights, coefficients

    return changed


def no_shift(original):
    """The weights are those of the basis, negative ones too."""

    def changed(basis):
        weights, coefficients = original(basis)
        return weights - weights[-1], coefficients

    return changed


def one_head_fewer(original):
    def changed(*args):
        heads = original(*args)
        return replace(heads, exact=heads.rank)

    return changed


def other_alternative(original):
    """Where there is z it is said to be all ones."""

    def changed(*args):
        heads = original(*args)
        if heads.positive is None:
            return heads
        return replace(heads, positive=(1,) * len(heads.positive))

    return changed


def always_sobel(original):
    return lambda name: original("sobel")


def half_as_far(original):
    def changed(*args):
        error = original(*args)
        return Enclosure(error.lower / 2, error.upper / 2)

    return changed


def no_content(original):
    return lambda layer, *args: layer


def never_in_values(original):
    return lambda positions, maps, query, in_values: original(positions, maps, query, False)


def printed_condition(original):
    return spans_hold


def first_alone(original):
    """No candidates but the singular vectors."""
    return lambda *args: [next(original(*args))]


def other_signs(original):
    return lambda weights, coefficients, *args: original(weights, -coefficients, *args)


HEADS = "bounds.kernel_heads.count_heads_of_kernel"
MIXTURES = "constructions.given_kernel.mixture_heads"
LAYER = "given_kernel_layer"
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
    (
        "approx",
        "errors on images",
        "ledger.evidence.least_eigenvalue.least_eigenvalue",
        scaled(1e6),
    ),
    ("content", "one-hot layers with content", "derivative_at", scaled(2)),
    ("content", "one-hot layers with content", "add_content", no_content),
    ("content", "arbitrary attention", "exact_convolution", scaled(2)),
    ("content", "arbitrary attention", "rational_rank", always(2)),
    ("content", "positions in the values", "derivative_with_positions", never_in_values),
    ("content", "derivative on pieces of images", "derivative_at", scaled(2)),
    (
        "content",
        "derivative on pieces of images",
        "ledger.evidence.head_floor.floor_below",
        scaled(1e9),
    ),
    ("lemma3", "C20's counterexamples", "shared_map_exists", printed_condition),
    ("lemma3", "patches and pixels", "shared_map_exists", printed_condition),
    ("lemma3", "patches and pixels", "exact_convolution", scaled(2)),
    (
        "lemma3",
        "random mixtures on images",
        "constructions.given_kernel.mixture_layer",
        other_signs,
    ),
]
