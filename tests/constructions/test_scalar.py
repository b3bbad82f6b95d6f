import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_within
from constructions.lagrange import amplification, coefficients
from constructions.rational_layers import RATIONAL, as_fractions, rational_layer
from constructions.slow_definitions import slow_conv, slow_token_maps
from hypothesis import given
from hypothesis import strategies as st
from roundings import ELEMENTARY, gamma, roundoff, softmax_factor
from strategies import make_case

import convattn as ca
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.scalar import (
    lagrange_coefficients,
    refuse_ill_conditioned,
    rounding_amplification,
    scalar_bases,
    scalar_construction,
)
from convattn.operators.shifts import TokenGrid

both = pytest.mark.parametrize("exact", [True, False])


@given(st.integers(1, 12), st.booleans())
def test_coefficients_are_those_that_elimination_finds(count, exact):
    bases = scalar_bases(count)
    actual = lagrange_coefficients(count, exact)
    assert [list(row) for row in actual] == coefficients(bases, exact)
    assert rounding_amplification(count, exact) == amplification(bases, exact)


def scalar_heads(maps, exact, dropped=None):
    """Rows t^h/Z_h and maps Z_h Σ_δ V_hδ M_δ."""
    bases = scalar_bases(len(maps))
    inverse = coefficients(bases, exact)
    first = 0 if exact else 1

    def heads(count):
        parts = []
        for h, row in enumerate(inverse, start=first):
            total = sum(Fraction(t) ** h for t in bases) + (count - len(bases) if exact else 0)

            def weights(hit, h=h, total=total):
                outside = Fraction(exact) / total
                keys = [outside] * count
                for base, at in zip(bases, (hit[offset] for offset in maps), strict=True):
                    keys[at] = Fraction(base) ** h / total
                return keys

            block = sum(v * m for v, m in zip(row, maps.values(), strict=True)) * total
            parts.append((weights, block))
        return [part for number, part in enumerate(parts) if number != dropped]

    return heads


@both
@pytest.mark.parametrize("bucket", RATIONAL)
def test_in_rational_numbers_one_feature_gives_the_convolution(bucket, exact):
    """T + 1 heads at finite parameters; T heads once nothing is left outside the offsets."""
    case = make_case(bucket, 3)
    maps = slow_token_maps(as_fractions(case.kernel), bucket.patch_size, dilation=bucket.dilation)
    heads = scalar_heads(maps, exact)
    assert len(heads(100)) == len(maps) + exact
    patch = bucket.patch_size
    output = rational_layer(case.images, patch, patch, list(maps), heads)
    assert (output == slow_conv(case.images, case.kernel, dilation=bucket.dilation)).all()


@both
def test_with_one_head_less_it_does_not(exact):
    bucket = RATIONAL[3]
    case = make_case(bucket, 3)
    maps = slow_token_maps(as_fractions(case.kernel), bucket.patch_size)
    expected = slow_conv(case.images, case.kernel)
    for dropped in range(len(maps) + exact):
        heads = scalar_heads(maps, exact, dropped)
        output = rational_layer(case.images, (1,), (1,), list(maps), heads)
        assert (output != expected).any()


@pytest.mark.slow
@both
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_and_gains_are_the_powers_of_the_bases(exact, dtype):
    """a_h·Z_h = t^h at the offsets and 1, in the limit 0, elsewhere.

    Scores off by (9 + 1 + 1)u·s with s = T·log(T + 1), softmax, and gains as in
    `exact_form_bounds`.
    """
    geometry = ConvolutionGeometry.of((3,), 2)
    count, keys = geometry.heads, 6
    maps = jnp.ones((count, 2, 2), dtype)
    encoding, _ = scalar_construction(maps, geometry, exact=exact)
    assert encoding.heads == count + exact
    assert_dtype(encoding.log_bases, dtype)
    grid = TokenGrid((4,), ((1, 1),))
    weights = np.asarray(jax.nn.softmax(encoding.positional_scores(grid), axis=-1), np.float64)
    products = weights * np.asarray(encoding.head_gains(keys), np.float64)[:, None, None]
    expected = np.full(products.shape, float(exact))
    for head in range(count + exact):
        for query in range(4):
            for offset, base in zip((-1, 0, 1), scalar_bases(count), strict=True):
                expected[head, query, 1 + query + offset] = float(base) ** (head + (not exact))
    u = roundoff(dtype)
    height = count * math.log(count + 1)
    factor = softmax_factor((ELEMENTARY + 3.01) * u * height, keys, u)
    factor *= math.exp((ELEMENTARY + 2.01) * u * height) * (1 + gamma(ELEMENTARY + count + 4, u))
    assert_within(products, expected, (factor - 1) * expected)


def test_the_sharpness_of_the_limit_is_the_one_given():
    geometry = ConvolutionGeometry.of((3,), 2)
    encoding, _ = scalar_construction(jnp.ones((geometry.heads, 2, 2)), geometry, 7.0, exact=False)
    assert encoding.logit == 7


def test_the_refusal_begins_where_less_than_two_digits_are_left():
    """κu ≤ 2⁻⁷ for T = 6 in float32 and not for T = 7."""
    u = Fraction(1, 2**24)
    for count in range(1, 10):
        if amplification(scalar_bases(count), True) * u > Fraction(1, 128):
            assert count >= 7
            with pytest.raises(ValueError, match=f"reads {count} offsets"):
                refuse_ill_conditioned(count, True, "float32")
            with pytest.raises(ValueError, match=f"reads {count} offsets"):
                ca.conv_to_attention(jnp.ones((count, 1, 1), "float32"), encoding="scalar")
        else:
            assert count <= 6
            refuse_ill_conditioned(count, True, "float32")
    assert 0.5 < 128 * amplification(scalar_bases(2), False) / 2**11 <= 1
    refuse_ill_conditioned(2, False, "float16")
