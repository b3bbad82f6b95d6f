import jax.numpy as jnp
import numpy as np
from comparison import assert_equal
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds, small_integers
from token_grids import GRIDS, IMAGES, compiled_scores, slow_shift_scores

from convattn.encodings.gaussian import GaussianEncoding, gaussian_features, gaussian_target

HEADS = 3


@given(st.sampled_from(GRIDS), seeds())
def test_scores_are_half_the_squared_length_of_the_mapped_distance(grid, seed):
    generator = np.random.default_rng(seed)
    axes = len(grid.queries)
    centers = small_integers(generator, HEADS, axes) / 2
    roots = small_integers(generator, HEADS, axes, axes)
    encoding = GaussianEncoding(jnp.asarray(centers), jnp.asarray(roots))

    def score(head, shift):
        total = 0.0
        for row in range(axes):
            total += (
                sum(roots[head, row, c] * (shift[c] - centers[head, c]) for c in range(axes)) ** 2
            )
        return -total / 2

    assert_equal(compiled_scores(encoding, grid), slow_shift_scores(grid, HEADS, score))


@given(st.sampled_from(IMAGES), seeds())
def test_printed_form_is_the_centred_one_up_to_a_constant_for_each_head(grid, seed):
    """Equation 19: v·r_δ = -½(δ - Δ)ᵀ Σ⁻¹ (δ - Δ) + ½ Δᵀ Σ⁻¹ Δ, exactly on integers."""
    generator = np.random.default_rng(seed)
    centers = small_integers(generator, HEADS, 2)
    roots = small_integers(generator, HEADS, 2, 2)
    precision = roots.transpose(0, 2, 1) @ roots
    target = np.asarray(gaussian_target(jnp.asarray(precision), jnp.asarray(centers)))
    printed = target @ gaussian_features(grid.shifts).T
    constant = np.einsum("hi,hij,hj->h", centers, precision, centers) / 2
    centred = GaussianEncoding(jnp.asarray(centers), jnp.asarray(roots)).shift_scores(
        grid.shifts, 1
    )
    assert_equal(printed, centred + constant[:, None])
