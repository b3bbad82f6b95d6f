"""Planted errors for the claims of Barkan."""

import math

import jax.numpy as jnp
import numpy as np
from proofs.plants.changes import (
    always,
    doubled_kernel,
    first,
    given,
    scaled,
    then,
    turned_kernel,
    with_options,
)

scores_turned = first(lambda scores: jnp.swapaxes(scores, -1, -2))
# A bias that tells one key from the next.
ramped = then(lambda scores: scores + jnp.arange(scores.shape[-1], dtype=scores.dtype))
one_step = with_options(step=None)
causal = with_options(causal=True)
rolled = then(lambda filters: jnp.roll(filters, 1, axis=-3))
moved_by_one = then(lambda images: np.roll(images, 1, axis=2))
one_less = then(lambda reach: reach - 1)
one_order = given(lambda width, sign: (width, 1))


def with_bracket(bracket):
    return given(lambda image, weights, *args: (image, weights, bracket))


@given
def symmetric_kernel(images, kernel):
    return images, sum(np.flip(kernel, axes) for axes in ((), 0, 1, (0, 1)))


def all_scales(original):
    return lambda count: list(range(1, count + 1))


@given
def added_twice(images, segment, how):
    return images, 2 * segment if how == "add" else segment, how


DEFINITION_1 = "ledger.evidence.printed_filters.printed_convolution"
SOFTMAX = "ledger.evidence.exact_attention.exact_softmax"
OPERATOR = "sac.self_attentive_convolution"
RUNS = "sac_from_convolution"
SATURATION = "ledger.bounds.saturation"
PLANTS = [
    ("lemma1", "the ceiling", DEFINITION_1, with_bracket(math.floor)),
    ("lemma1", "the ceiling", DEFINITION_1, with_bracket(math.ceil)),
    ("lemma1", "the floor reads the next pixel", DEFINITION_1, with_bracket(math.ceil)),
    ("lemma1", "tokens are columns", "sac.filter_bank", scaled(2)),
    ("softmax", "convex combinations", "rows_of_weights", scaled(2)),
    ("softmax", "two tokens", SOFTMAX, scaled(2)),
    ("softmax", "four axes", "rows_of_weights", scaled(2)),
    ("softmax", "queries first", "sac.attend.attend", scores_turned),
    ("sa2d", "eqs. 1 to 3", f"{OPERATOR}.content_scores_of_heads", scaled(2)),
    ("sa2d", "eqs. 1 to 3", f"{OPERATOR}.even_bias_scores", ramped),
    ("sa2d", "distances from zero", "distances", always({1, 2, 3, 4, 5})),
    ("sa2d", "even kernels exactly", "sac.sac_from_even_kernel", doubled_kernel),
    ("sa2d", "layers commute with reflections", f"{OPERATOR}.even_bias_scores", ramped),
    ("sa2d", "convolutions, if even", "exact_convolution", symmetric_kernel),
    ("sac", "distance to its own patch", f"{SATURATION}.bias_total_variation", scaled(2)),
    ("sac", "3 × 3, two heads exactly", RUNS, turned_kernel),
    ("sac", "2 × 4, stride 2, two heads, keys on all pixels", RUNS, turned_kernel),
    ("sac", "3 × 2, stride 2, dilation 2, one head", RUNS, turned_kernel),
    ("sac", "one head at M = 4", "sac.sac_from_convolution", doubled_kernel),
    ("sac", "one head at M = 4", "sac.limit_error_bound", scaled(0.5)),
    ("sac", "1 × 1 is 2-D self-attention", "sac.self_attention_2d", scaled(2)),
    ("sac", "two merges", OPERATOR, scaled(2)),
    ("sac", "grids under stride", f"{OPERATOR}.even_bias_scores", one_step),
    ("msac", "MSAC is SAC", "sac.multiscale.embed", rolled),
    ("msac", "the range of the scales", "printed_range", all_scales),
    ("msac", "a cascade of two 3 × 3", "full_convolution", scaled(2)),
    ("language", "no later word", "multiscale", with_options(causal=False)),
    ("language", "a mask alone leaks", "multiscale", causal),
    ("language", "1 × m is one-dimensional", "sac.as_sequence", causal),
    ("language", "regular if the bias is constant", f"{OPERATOR}.even_bias_scores", ramped),
    ("language", "pairs at the border", DEFINITION_1, scaled(2)),
    ("cross", "the seam", "joined_image", moved_by_one),
    ("cross", "the default gap", "sac.seam_reach", one_less),
    ("cross", "unmasked gaps take weight", SOFTMAX, scaled(2)),
    ("cross", "segments", "sac.with_segment", added_twice),
    ("cross", "distances of the join", "distances", one_order),
]
