"""Planted mistakes, each in a layer that is right otherwise, make the comparison fail."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from constructions.conversion_cases import REGIMES, ROWS, applied, converted, reference
from constructions.conversion_comparison import compare
from strategies import make_case

SQUARE = replace(
    ROWS[0].bucket, batch=2, space=(5, 4), kernel_size=(3, 3), in_channels=2, out_channels=2,
    stride=(1, 1), dilation=(1, 1), patch_size=(1, 1),
)  # fmt: skip


def flipped(layer, case, build):
    return build(case.kernel[::-1, ::-1])


def axes_swapped(layer, case, build):
    return build(case.kernel.swapaxes(0, 1))


def map_transposed(layer, case, build):
    return replace(layer, output=layer.output.swapaxes(1, 2))


def head_missing(layer, case, build):
    return replace(layer, output=layer.output.at[5].set(0))


def heads_exchanged(layer, case, build):
    return replace(layer, encoding=layer.encoding.take_heads([1, 0, *range(2, layer.heads)]))


def bias_forgotten(layer, case, build):
    return replace(layer, bias=None)


def ring_forgotten(layer, case, build):
    return replace(layer, ring=((0, 0), (0, 0)))


def one_weight_off(layer, case, build):
    return replace(layer, output=layer.output.at[4, 0, 1].add(1))


MISTAKES = (
    flipped, axes_swapped, map_transposed, head_missing, heads_exchanged, bias_forgotten,
    ring_forgotten, one_weight_off,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("encoding", "exact"), REGIMES)
def test_planted_mistakes_are_noticed(encoding, exact):
    dtype = "float64" if encoding == "scalar" else "float32"
    row = replace(
        ROWS[0],
        bucket=SQUARE,
        encoding=encoding,
        exact=exact,
        dtype=dtype,
        head_dim=None,
        bias=True,
    )
    case = make_case(SQUARE, 11, dtype)
    images, kernel, bias = case.cast()
    expected = reference(images, kernel, bias)

    def build(weights):
        return row.convert(jnp.asarray(weights, dtype), bias)

    right = build(case.kernel)
    compare(row, case, applied(right, images), expected, right.heads)
    for mistake in MISTAKES:
        wrong = mistake(right, case, build)
        with pytest.raises(AssertionError, match="out"):
            compare(row, case, applied(wrong, images), expected, right.heads)


def test_a_wrong_leak_is_noticed():
    row = replace(
        ROWS[0], bucket=SQUARE, encoding="bias", exact=True, dtype="float32", head_dim=None
    )
    case = make_case(SQUARE, 11, "float32")
    images, kernel, bias = case.cast()
    layer = row.convert(kernel, bias)
    wrong = replace(layer, encoding=replace(layer.encoding, uniform_weight=jnp.float32(0.501)))
    expected = reference(images, kernel, bias if row.bias else None)
    with pytest.raises(AssertionError, match="too far"):
        compare(row, case, applied(wrong, images), expected, layer.heads)


@pytest.mark.parametrize("encoding", ["enumerated", "polygon", "rotary"])
def test_at_a_small_sharpness_it_is_not_the_convolution(encoding):
    kernel, images = np.arange(3.0).reshape(3, 1, 1), np.arange(5.0).reshape(1, 5, 1)
    layer = converted(kernel, encoding=encoding, sharpness=2.0)
    with pytest.raises(AssertionError, match="out"):
        assert_equal(applied(layer, images), reference(images, kernel))
