"""Zero padding on the bare grid: the sums of the taps inside, the exceptions, and their layer."""

from itertools import product
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from hypothesis import given
from hypothesis import strategies as st

import convattn as ca
from convattn.bounds.rounding import layer_error_bound
from convattn.constructions.geometry import ConvolutionGeometry
from convattn_ledger.bounds.zero_padding import (
    available_sums,
    bare_zero_padding_basis,
    bare_zero_padding_layer,
    unequal_queries,
)
from convattn_ledger.evidence import exact_convolution

# Kernel size, tokens, patch size, dilation; each axis has its own numbers.
SIZES = (
    ((5, 5), (4, 4), 1, 1),
    ((3, 5), (2, 4), 1, 1),
    ((5,), (3,), 1, 1),
    ((4,), (3,), 1, 1),
    ((3,), (3,), 1, 2),
    ((5, 3), (2, 1), (2, 1), 1),
    ((7,), (3,), 2, 1),
)


def combined(sizes, seed, channels=(2, 3)):
    """A kernel of exceptions for these sizes, in integers."""
    kernel_size, tokens, patch, dilation = sizes
    basis = bare_zero_padding_basis(kernel_size, tokens, patch_size=patch, dilation=dilation)
    mix = np.random.default_rng(seed).integers(-3, 4, (*channels, len(basis)))
    return np.moveaxis(np.tensordot(mix, basis, 1), (0, 1), (-2, -1))


def ones_response(kernel, tokens, patch, dilation):
    """The convolution of equal tokens: for each feature of a token, the outputs by token."""
    geometry = ConvolutionGeometry.of(kernel.shape[:-2], patch, 1, dilation)
    pixels = [n * p for n, p in zip(tokens, geometry.patch_size, strict=True)]
    split = [length for pair in zip(tokens, geometry.patch_size, strict=True) for length in pair]
    axes = len(tokens)
    order = [*range(0, 2 * axes, 2), *range(1, 2 * axes, 2), 2 * axes]
    responses = []
    for *place, channel in product(*map(range, geometry.patch_size), range(kernel.shape[-2])):
        image = np.zeros((1, *pixels, kernel.shape[-2]), int)
        strided = (slice(i, None, p) for i, p in zip(place, geometry.patch_size, strict=True))
        image[(0, *strided, channel)] = 1
        outputs = exact_convolution(image, kernel, dilation=dilation)[0]
        responses.append(outputs.reshape(*split, -1).transpose(order).reshape(*tokens, -1))
    return np.stack(responses, axis=-2)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.quick(3)
def test_the_sums_are_the_responses_to_equal_tokens_and_unequal_queries_are_found(sizes):
    kernel_size, tokens, patch, dilation = sizes
    options = {"patch_size": patch, "dilation": dilation}
    kernel = np.random.default_rng(1).integers(-9, 10, (*kernel_size, 2, 3))
    sums = np.asarray(available_sums(kernel, tokens, **options))
    assert_equal(sums, ones_response(kernel, tokens, patch, dilation))
    first, second = unequal_queries(kernel, tokens, **options)
    assert (sums[first] != sums[second]).any()


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.quick(3)
def test_exceptions_have_equal_sums_are_independent_and_all(sizes):
    """Their number is the dimension of the null space of T_q - T_q' by floating-point ranks."""
    kernel_size, tokens, patch, dilation = sizes
    options = {"patch_size": patch, "dilation": dilation}
    basis = bare_zero_padding_basis(kernel_size, tokens, **options)
    assert np.linalg.matrix_rank(basis.reshape(len(basis), -1).astype(float)) == len(basis)
    kernel = combined(sizes, 3)
    assert kernel.any()
    sums = np.asarray(available_sums(kernel, tokens, **options))
    assert (sums == sums[(0,) * len(tokens)]).all()
    assert unequal_queries(kernel, tokens, **options) is None
    taps = prod(kernel_size)
    units = np.eye(taps, dtype=int).reshape(*kernel_size, 1, taps)
    sums = np.asarray(available_sums(units, tokens, **options)).reshape(prod(tokens), -1, taps)
    rank = np.linalg.matrix_rank((sums - sums[:1]).reshape(-1, taps).astype(float))
    assert len(basis) == taps - rank


@given(st.sampled_from([1, 3, 5]), st.sampled_from([1, 3, 7]), st.integers(1, 8), st.integers(1, 8))
def test_the_dimension_for_pixels(rows, columns, height, width):
    dimension = len(bare_zero_padding_basis((rows, columns), (height, width)))
    assert dimension == rows * columns - min(rows, height) * min(columns, width) + 1


def test_sums_are_compared_exactly():
    """1e-30 beside 1: no float sum could tell them apart."""
    kernel = np.array([1.0, 1.0, 1.0 + 2.0**-52]).reshape(3, 1, 1)
    assert unequal_queries(kernel, 2) == ((0,), (1,))
    tiny = np.array([2.0**-900, 2.0**90, 2.0**-900]).reshape(3, 1, 1)
    assert unequal_queries(tiny, 2) is None
    assert unequal_queries(tiny * np.array([1, 1, 2]).reshape(3, 1, 1), 2) == ((0,), (1,))
    half = jnp.array([0.1, 7, 0.1], jnp.bfloat16).reshape(3, 1, 1)
    assert unequal_queries(half, 2) is None
    large = np.array([2**62, 1, 2**62 + 1]).reshape(3, 1, 1)
    assert unequal_queries(large, 2) == ((0,), (1,))


@pytest.mark.parametrize(("sizes", "uniform_weight"), [(SIZES[0], 0.25), (SIZES[5], 0.5)])
@pytest.mark.quick(1)
def test_the_layer_is_the_zero_padded_convolution(sizes, uniform_weight):
    """Rows sum to one, so the majorant is at most max|X| Σ_h Σ_δ |C_hδ||M_δ|, with |C| summing over
    the heads to 1/(1-ε) + 1 + 1/(1-ε) at most for each δ."""
    kernel_size, tokens, patch, dilation = sizes
    kernel, bias = combined(sizes, 4), np.array([3, -1, 2])
    geometry = ConvolutionGeometry.of(kernel_size, patch, 1, dilation)
    space = [n * p for n, p in zip(tokens, geometry.patch_size, strict=True)]
    images = np.random.default_rng(5).integers(-9, 10, (2, *space, 2))
    layer = bare_zero_padding_layer(
        kernel.astype(float), bias.astype(float), tokens=tokens, patch_size=patch,
        dilation=dilation, uniform_weight=uniform_weight,
    )  # fmt: skip
    assert layer.heads == geometry.heads + 1
    expected = exact_convolution(images, kernel, dilation=dilation) + bias
    assert layer.ring == ((0, 0),) * len(tokens)
    typed = jnp.asarray(images, float)
    largest = 9 * np.abs(kernel).sum() * (2 / (1 - uniform_weight) + 1) + 3
    bound = layer_error_bound(layer, typed, np.full(expected.shape, largest))
    assert_within(jax.jit(ca.apply_attention)(layer, typed), expected, bound)


@pytest.mark.slow
def test_the_layer_in_fractions_by_hand():
    """Two pixels, K = 3, W = (3, 10, 3): N = 2, ε = 1/2, so e^M = 3 and rows (3, 1)/4."""
    layer = bare_zero_padding_layer(np.array([3.0, 10.0, 3.0]).reshape(3, 1, 1), tokens=2)
    assert layer.output[:, 0, 0].tolist() == [6.0, 20.0, 6.0, -19.0]  # T - ΣW/(1-ε) = 13 - 32
    weights = np.asarray(ca.attention_maps(layer, [2]).weights, float)
    expected = [
        [[0.5, 0.5], [0.75, 0.25]],
        [[0.75, 0.25], [0.25, 0.75]],
        [[0.25, 0.75], [0.5, 0.5]],
    ]
    # log1p, exp, the sum and the quotient: 8 + 8 + 2 + 1 roundings, and the maximum taken off.
    assert_within(weights[:3], expected, gamma(20, "float64"))


BOX = np.ones((3, 3, 1, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bare_zero_padding_layer(BOX, tokens=4), r"differ between the queries \(0, 0\)"),
        (lambda: bare_zero_padding_layer(BOX, tokens=1, uniform_weight=1.0), r"weight=1\.0"),
        (lambda: bare_zero_padding_layer(BOX, tokens=0), r"tokens=0"),
        (lambda: bare_zero_padding_layer(BOX, np.ones(2), tokens=1), r"bias\.shape"),
        (lambda: unequal_queries(BOX, (2, 2, 2)), r"tokens=\(2, 2, 2\)"),
        (lambda: unequal_queries(BOX[0, 0], 2), r"kernel\.shape=\(1, 1\)"),
        (lambda: unequal_queries(BOX * 1j, 2), "complex"),
        (lambda: available_sums(BOX * np.nan, 2), "finite"),
        (lambda: bare_zero_padding_basis((3, 0), 2), "kernel_size=0, but expected"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
