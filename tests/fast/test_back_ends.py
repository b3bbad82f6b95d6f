"""Every back end gives the values and the gradients of the exact layer, within derived bounds.

The reference is the dense back end in float64. It and the back end under test are each off by at
most their own bound (`convattn_ledger.bounds.back_ends`), so they differ by at most the sum.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_within
from fast.layers import LAYER_BUCKETS, LayerBucket, LayerCase, make_layer_case
from fast.tree_comparison import assert_tree_within
from hypothesis import given, settings
from strategies import seeds

import convattn as ca
from convattn.fast.options import AttentionOptions, Window
from convattn.fast.selection import BACK_ENDS
from convattn_ledger.bounds.back_ends.bounds import gradient_bounds, value_bound

OTHERS = tuple(name for name in BACK_ENDS if name != "dense")
# Which back ends' gradients are compared, on which bucket: once for each kind of encoding that they
# are made for. A program with its gradient takes a second to compile; values are compared on all.
GRADIENTS = {
    "learned-4x3": ("separable", "chunked"),
    "axial-4x5": ("separable",),
    "quadratic-5x4": ("separable", "windowed"),
    "quadratic_grid-8x6": ("separable",),
    "gaussian-4x5": ("windowed",),
    "bias-4x6": ("shift",),
    "enumerated-1x6": ("shift",),
    "polygon-4x3": ("shift",),
    "axial_rotary-4x5": ("separable",),
    "rotary-3x5": ("chunked", "windowed"),
    "scalar-4x5": ("shift",),
    "relative-3x4-content": ("chunked", "dot_product"),
    "bias-3x4-content-tables": ("chunked", "dot_product"),
}
IN_FLOAT32 = ("quadratic-5x4", "bias-4x6", "relative-3x4-content", "bias-3x4-content-tables")
QUICK = [  # each back end once
    *(("quadratic-5x4", "float64"), ("bias-4x6", "float32"), ("relative-3x4-content", "float32")),
]
RUNS = [(name, "float64") for name in GRADIENTS] + [(name, "float32") for name in IN_FLOAT32]
BUCKETS = {str(bucket): bucket for bucket in LAYER_BUCKETS}
VALUES = tuple(name for name in BUCKETS if name not in GRADIENTS)


def everything(bucket: LayerBucket) -> tuple[Window, ...]:
    """Windows that leave nothing out."""
    axes = tuple((shifts.start, shifts.stop - 1) for shifts in bucket.grid.shift_ranges)
    return (axes,) * bucket.heads


def windows_for(name: str, bucket: LayerBucket) -> tuple[Window, ...] | None:
    return everything(bucket) if name == "windowed" else None


def serving(case: LayerCase, names: tuple[str, ...] = OTHERS) -> list[str]:
    """The back ends that do not refuse; dot_product takes float64 images to be a refusal."""
    return [
        name
        for name in names
        if BACK_ENDS[name].refusal(
            case.layer, case.grid, AttentionOptions(windows=windows_for(name, case.bucket))
        )
        is None
        and (name != "dot_product" or case.images.dtype != jnp.float64)
    ]


@partial(jax.jit, static_argnames=("name", "windows"))
def values(layer, images, name, windows=None):
    return ca.apply_attention(layer, images, backend=name, windows=windows)


@partial(jax.jit, static_argnames=("name", "windows"))
def values_and_gradients(layer, images, cotangent, name, windows=None):
    def apply(layer, images):
        return ca.apply_attention(layer, images, backend=name, windows=windows)

    result, pull = jax.vjp(apply, layer, images)
    return result, pull(cotangent)


def bounds(case: LayerCase):
    of_values = value_bound(case.layer, case.images)
    return of_values, gradient_bounds(case.layer, case.images, case.cotangent)


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [run if run in QUICK else pytest.param(*run, marks=pytest.mark.slow) for run in RUNS],
)
@settings(max_examples=2)
@given(seed=seeds())
def test_values_and_gradients(name, dtype, seed):
    """In float64; and in float32, where each kind of back end and dense have a turn."""
    case = make_layer_case(BUCKETS[name], seed, "float32")
    wide = case.wide()
    reference = values_and_gradients(wide.layer, wide.images, wide.cotangent, "dense")
    reference_bounds = limits = bounds(wide)
    names = list(GRADIENTS[name])
    if dtype == "float32":
        limits, names = bounds(case), ["dense", *names]
    else:
        case = wide
    for name in serving(case, tuple(names)):
        windows = windows_for(name, case.bucket)
        result = values_and_gradients(case.layer, case.images, case.cotangent, name, windows)
        jax.tree.map(
            lambda gradient, primal: assert_dtype(gradient, primal.dtype),
            result[1],
            (case.layer, case.images),
        )
        assert_dtype(result[0], dtype)
        assert_tree_within(result, reference, limits, reference_bounds, name=name)


def check_values(case: LayerCase, names: list[str]) -> None:
    wide = case.wide()
    reference = np.asarray(values(wide.layer, wide.images, "dense"))
    limit = value_bound(case.layer, case.images) + value_bound(wide.layer, wide.images)
    dtype = case.images.dtype if case.layer.dtype is None else case.layer.dtype
    expected = jnp.result_type(case.images, dtype)
    for name in names:
        result = values(case.layer, case.images, name, windows_for(name, case.bucket))
        assert_dtype(result, expected if jnp.issubdtype(expected, jnp.inexact) else "float32", name)
        assert_within(result, reference, limit, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", VALUES)
@settings(max_examples=2)
@given(seed=seeds())
def test_values(name, seed):
    """Where gradients are not compared: in float64, or float32 where nothing else serves."""
    case = make_layer_case(BUCKETS[name], seed, "float32" if "content" in name else "float64")
    check_values(case, serving(case))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quadratic-5x4", "bias-4x6"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@settings(max_examples=2)
@given(seed=seeds())
def test_values_of_half_precision_layers(name, dtype, seed):
    case = make_layer_case(BUCKETS[name], seed, dtype)
    check_values(case, ["dense", *serving(case)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["leaky_bias-1x1", "mixture-6"])
def test_values_of_integer_images(name, implicit_promotion):
    case = make_layer_case(BUCKETS[name], 3, "float32", images="int32")
    check_values(case, ["dense", *serving(case)])


@pytest.mark.parametrize("ring", [((0, 0), (0, 0)), ((0, 2), (1, 0))], ids=str)
@pytest.mark.quick(1)
def test_another_ring(ring):
    case = make_layer_case(BUCKETS["one_hot_quadratic-3x5"], 6, "float64")
    layer = replace(case.layer, ring=ring)
    limit = 2 * value_bound(layer, case.images)
    apply = jax.jit(ca.apply_attention, static_argnames="backend")
    result = apply(layer, case.images, backend="separable")
    assert_within(result, apply(layer, case.images, backend="dense"), limit)


def test_every_back_end_is_compared():
    """A back end that refuses all layers would pass every other test."""
    compared = set()
    for name, back_ends in GRADIENTS.items():
        served = serving(make_layer_case(BUCKETS[name], 0, "float32"), back_ends)
        assert served == list(back_ends)
        compared.update(served)
    assert compared == set(OTHERS)
