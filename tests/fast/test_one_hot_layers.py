"""Layers whose weights are zero and one are their convolution, on integers to the last bit."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal

import convattn as ca

CENTRED = {"dilation": (2, 1), "padding": ((0, 2), (2, 2))}  # so that other rings may lie
# Back end, kernel, options, image, ring and dtype.
CASES = [
    *(("separable", (3, 2), {}, (4, 6), None, d) for d in ("float64", "float32", "bfloat16")),
    *(("separable", (3, 2), {}, (4, 6), None, dtype) for dtype in ("float16", "int32")),
    ("separable", (3, 3), {"patch_size": 2}, (4, 6), None, "bfloat16"),
    ("separable", (2, 5), {"dilation": (2, 1)}, (5, 1), None, "float32"),
    ("separable", (3, 3), {"stride": 2, "head_dim": 1}, (1, 4), None, "int32"),
    *(("shift", (3, 3), {"patch_size": 2}, (4, 6), None, d) for d in ("float64", "float32")),
    *(("shift", (3, 3), {"patch_size": 2}, (4, 6), None, d) for d in ("bfloat16", "float16")),
    ("shift", (3, 3), {"patch_size": 2}, (4, 6), None, "int32"),
    ("shift", (3, 2), {}, (4, 6), None, "float32"),
    ("shift", (3, 3), {"encoding": "enumerated"}, (4, 1), ((2, 2), (2, 2)), "float32"),
    ("shift", (2, 5), CENTRED, (5, 4), ((2, 3), (2, 4)), "float32"),
    ("shift", (3,), {"patch_size": (2,)}, (6,), None, "float32"),
    ("shift", (3, 3), {"head_dim": 1}, (3, 4), None, "float32"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "kernel_size", "options", "space", "ring", "dtype"), CASES)
def test_they_are_the_convolution(backend, kernel_size, options, space, ring, dtype, request):
    generator = np.random.default_rng(0)
    weights = "float32" if dtype == "int32" else dtype
    if weights != dtype:
        request.getfixturevalue("implicit_promotion")
    kernel = jnp.asarray(generator.integers(-2, 3, (*kernel_size, 2, 3)), weights)
    images = jnp.asarray(generator.integers(0, 4, (2, *space, 2)), dtype)
    encoding = "quadratic" if backend == "separable" else "bias"
    plain = {n: part for n, part in options.items() if n in ("dilation", "padding", "stride")}

    @jax.jit
    def both(kernel, images):
        layer = ca.conv_to_attention(kernel, form="limit", **{"encoding": encoding, **options})
        layer = layer if ring is None else replace(layer, ring=ring)
        actual = ca.apply_attention(layer, images, backend=backend)
        return actual, ca.conv(images.astype(weights), kernel, **plain)

    actual, expected = both(kernel, images)
    assert_dtype(actual, weights)
    assert_equal(actual, expected)
    assert float(jnp.abs(actual).max()) > 0
