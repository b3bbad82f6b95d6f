"""The separable back end: dense values and gradients, the exact convolution, no matrix of pairs."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_within
from fast.layers import NO, LayerBucket, axial, learned, make_layer_case, quadratic
from fast.programs import largest_intermediate
from fast.tree_comparison import assert_tree_within

import convattn as ca
from convattn.encodings import QuadraticGridEncoding
from convattn.encodings.axis_scores import free_groups
from convattn.encodings.layer import ContentScores
from convattn.fast.options import AttentionOptions
from convattn.fast.selection import choose_backend
from convattn.fast.separable import back_end as separable
from convattn.fast.separable.back_end import AxisFactors, rows_first
from convattn.operators.shifts import TokenGrid
from convattn_ledger.bounds.back_ends.bounds import gradient_bounds, value_bound


def on_grid(*pairs):
    """A draw of centres at these pairs of coordinates."""
    counts = np.max(pairs, axis=0) + 1

    def grid(rng, grid, heads):
        alpha = tuple(rng.uniform(0.1, 2.0, n) for n in counts)
        return QuadraticGridEncoding(alpha, tuple(rng.normal(size=n) for n in counts), pairs)

    return grid


RECTANGLE = on_grid(*((i, j) for i in range(2) for j in range(3)))
INCOMPLETE = on_grid((0, 0), (0, 1), (1, 0), (1, 1), (1, 2))  # five of six: still a grid
REPEATED = on_grid((0, 0), (1, 1), (0, 0), (0, 1), (1, 1))
DIAGONAL = on_grid((0, 0), (1, 1), (2, 2))  # three of nine: heads one by one
ONE = on_grid((0, 0))
UNEVEN = ((1, 0), (0, 2))
# name: the bucket, and whether gradients are compared too.
CASES = {
    "rectangle, output": (LayerBucket(RECTANGLE, 6, 1, (4, 5), UNEVEN, 3, output=4), False),
    "rectangle, out wider": (LayerBucket(RECTANGLE, 6, 1, (5, 2), NO, 2, output=9), False),
    "incomplete, fused": (LayerBucket(INCOMPLETE, 5, 3, (4, 5), NO, 3, value=8, output=4), False),
    "repeated, value": (LayerBucket(REPEATED, 5, 1, (3, 4), ((2, 1), (0, 1)), 2, value=3), True),
    "diagonal, none": (LayerBucket(DIAGONAL, 3, 3, (2, 5), ((0, 1), (3, 0)), 2), False),
    "one head, narrow": (LayerBucket(ONE, 1, 1, (4, 3), UNEVEN, 4, value=1, output=5), False),
    "free, narrow": (LayerBucket(quadratic, 3, 3, (3, 4), UNEVEN, 5, value=1, output=4), True),
    "free, value": (LayerBucket(quadratic, 2, 1, (5, 1), ((0, 3), (1, 1)), 3, value=2), False),
    "learned, none": (LayerBucket(learned, 2, 1, (1, 5), ((0, 2), (0, 0)), 2), True),
    "axial, output": (LayerBucket(axial, 2, 1, (4, 3), NO, 2, output=3, bias=True), False),
    "one pixel": (LayerBucket(axial, 2, 3, (1, 1), UNEVEN, 2, value=1, output=3), False),
}


@partial(jax.jit, static_argnames="name")
def values(layer, images, name):
    return ca.apply_attention(layer, images, backend=name)


@partial(jax.jit, static_argnames="name")
def values_and_gradients(layer, images, cotangent, name):
    result, pull = jax.vjp(partial(values, name=name), layer, images)
    return result, pull(cotangent)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_dense(name):
    """In float64; both are off by at most the bound."""
    bucket, with_gradients = CASES[name]
    case = make_layer_case(bucket, 1, "float64")
    limit = value_bound(case.layer, case.images)
    if not with_gradients:
        actual = values(case.layer, case.images, "separable")
        assert_within(actual, values(case.layer, case.images, "dense"), 2 * limit)
        return
    args = case.layer, case.images, case.cotangent
    limits = limit, gradient_bounds(*args)
    actual = values_and_gradients(*args, "separable")
    assert_tree_within(actual, values_and_gradients(*args, "dense"), limits, limits)


def parts_of(layer, case):
    factors = separable.axis_factors(layer.encoding.axis_scores(case.grid), case.grid)
    return factors[:2], separable.arrange_maps(layer, case.grid, 50, 9.0, np.dtype("float64"))


def test_the_cases_take_every_way():
    """Grids and free heads; rows first and columns first; no map, one before, one after, both."""
    branches = set()
    for bucket, _ in CASES.values():
        case = make_layer_case(bucket, 1, "float64")
        (rows, columns), maps = jax.eval_shape(partial(parts_of, case=case), case.layer)
        groups = getattr(case.layer.encoding, "groups", free_groups(bucket.heads, 2))
        factors = AxisFactors(rows, columns, *groups)
        out = bucket.output or bucket.value or bucket.channels
        first = rows_first(factors, bucket.channels, out)
        branches.add((factors.on_grid, first, maps.before is None, maps.after is None))
    assert {(True, first, True, False) for first in (True, False)} < branches
    assert {way[2:] for way in branches if not way[0]} >= {(True, True), (False, False)}
    assert {way[0] for way in branches} == {True, False}


@pytest.mark.parametrize("draw", [RECTANGLE, quadratic, learned])
@pytest.mark.quick(1)
def test_no_matrix_of_queries_and_keys_is_formed(draw):
    bucket = LayerBucket(draw, 6, 1, (24, 20), ((1, 1), (1, 1)), 2, output=3)
    case = make_layer_case(bucket, 4)
    pairs = 24 * 20 * 26 * 22

    def step(name):
        def loss(layer, images):
            return ca.apply_attention(layer, images, backend=name).sum()

        return jax.value_and_grad(loss, argnums=(0, 1))

    assert largest_intermediate(step("separable"), case.layer, case.images) < pairs / 10
    assert largest_intermediate(step("dense"), case.layer, case.images) >= 6 * pairs


def refused(message, layer, images, **options):
    with pytest.raises(
        ValueError, match=rf"backend='separable' cannot serve this layer: {message}"
    ):
        ca.apply_attention(layer, images, backend="separable", **options)


def test_what_it_refuses():
    images = jnp.ones((1, 3, 4, 2))
    case = make_layer_case(CASES["learned, none"][0], 1)
    convert = jax.jit(ca.conv_to_attention, static_argnames="encoding")
    other = convert(jnp.ones((3, 3, 2, 2)))
    refused("the scores of BiasEncoding are no sum of a row term.*take 'shift'", other, images)
    content = ContentScores(jnp.ones((2, 2, 3)), jnp.ones((2, 2, 3)))
    refused(
        "content scores do not factor over the axes; take 'dot_product', 'chunked' or 'dense'",
        replace(case.layer, content=content),
        case.images,
    )
    dropout = {"dropout_rate": 0.5, "dropout_key": jax.random.key(0)}
    refused("it never forms the weights that dropout", case.layer, case.images, **dropout)
    sequence = convert(jnp.ones((3, 2, 2)), encoding="quadratic")
    refused("the grid has 1 axis, so there is nothing to factor", sequence, images[0])
    options = AttentionOptions()
    assert separable.refusal(case.layer, case.grid, options) is None
    chosen = choose_backend("separable", case.layer, case.grid, (1, 1, 5, 2), options)
    assert chosen is separable.SEPARABLE


def test_heads_on_a_grid_cost_fewer_products_than_free_ones():
    grid = TokenGrid((16, 16), NO)
    shared = make_layer_case(CASES["rectangle, output"][0], 1).layer
    free = replace(shared, encoding=make_layer_case(CASES["free, value"][0], 1).layer.encoding)
    free = replace(free, encoding=free.encoding.take_heads([0, 1] * 3))
    maps = 256 * 6 * 3 * 4
    expected = 256 * 16 * (3 * 3 + 2 * 4)  # three columns of 3 features, two rows of 4
    assert separable.work(shared, grid, 1, 3).products == maps + expected
    assert separable.work(free, grid, 1, 3).products == maps + 256 * 16 * (6 * 3 + 6 * 4)
