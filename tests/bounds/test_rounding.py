"""The rounding bound holds, says something, and catches a wrong layer.

Measured errors are against integers (or, for other kernels, float64), so they are exact. Over sixty
seeds, three buckets and leaks from 10⁻⁶ to 0.99 the largest bound of a case was at least 24 and 18
times its largest error for biases in float64 and float32, 1.6 and 2.2 in float16 and bfloat16,
where the last cast is most of both, and 240 times for the scalar encoding.
"""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bounds.rounding_formula import NARROW, RELATIVE, SINGLE, formula_bound, softmax_factors
from comparison import assert_within
from hypothesis import given, settings
from hypothesis import strategies as st
from roundings import gamma
from strategies import CONVERSION_BUCKETS, FLOATS, make_case, seeds

import convattn as ca
from convattn.bounds import rounding
from convattn.bounds.majorant import majorant_of
from convattn.bounds.rounding import layer_error_bound, underflow_bound
from convattn.encodings.majorants import ScoreError
from convattn.operators.attention import (
    contraction_lengths,
    multi_head_self_attention,
    place_single_map,
)
from convattn.operators.roundoff import unit_roundoff
from convattn.operators.shifts import TokenGrid

BUCKETS = tuple(CONVERSION_BUCKETS[index] for index in (0, 3, 5))
# The scalar encoding is refused in narrower dtypes; there is nothing to bound.
FORMS = (*(("bias", dtype) for dtype in FLOATS), ("scalar", "float64"), ("scalar", "float32"))
apply = jax.jit(ca.apply_attention)


def make_layer(case, kernel, bias, encoding, uniform_weight=0.5, **others):
    options = {"patch_size": case.bucket.patch_size, **case.bucket.options, **others}
    return ca.conv_to_attention(
        kernel, bias, encoding=encoding, uniform_weight=uniform_weight, **options
    )


def exact_result(case):
    return np.asarray(ca.conv(case.images, case.kernel, case.bias, **case.bucket.options))


def bound_of(case, layer, images, kernel, bias, **options):
    majorant = majorant_of(layer, kernel, bias, images, groups=case.bucket.groups)
    return layer_error_bound(layer, images, majorant, **options), majorant


@pytest.mark.slow
@pytest.mark.parametrize(("encoding", "dtype"), FORMS)
@settings(max_examples=8)
@given(
    bucket=st.sampled_from(BUCKETS),
    seed=seeds(),
    uniform_weight=st.sampled_from([0.5, 0.25, 0.1, 0.9, 0.01]),
)
def test_the_error_is_within_a_bound_that_says_something(
    encoding, dtype, bucket, seed, uniform_weight
):
    uniform_weight = uniform_weight if encoding == "bias" else 0.5  # no other form has one
    case = make_case(bucket, seed, dtype)
    images, kernel, bias = case.cast()
    layer = make_layer(case, kernel, bias, encoding, uniform_weight)
    bound, majorant = bound_of(case, layer, images, kernel, bias)
    assert_within(apply(layer, images), exact_result(case), bound)
    assert (bound <= majorant / 64).all()


@pytest.mark.quick(1)
@pytest.mark.parametrize(("encoding", "dtype"), FORMS)
def test_weights_that_are_off_by_more_are_caught(encoding, dtype):
    """Maps times 1 + η move the result by η·|exact| ± (1 + η)·bound: beyond it for η = 4 b/|e|."""
    case = make_case(BUCKETS[0], 2, dtype)
    images, kernel, _ = case.cast()
    layer = make_layer(case, kernel, None, encoding, 0.5)
    bound, _ = bound_of(case, layer, images, kernel, None)
    exact = np.asarray(ca.conv(case.images, case.kernel, **case.bucket.options))
    ratio = float((bound / np.maximum(np.abs(exact), 1e-9)).min())
    assert ratio < 0.1
    wrong = replace(layer, output=(layer.output * (1 + 4 * ratio)).astype(dtype))
    with pytest.raises(AssertionError, match="expected within"):
        assert_within(apply(wrong, images), exact, bound)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.quick(1)
def test_a_leak_that_is_off_is_caught(dtype):
    case = make_case(BUCKETS[1], 2, dtype)
    images, kernel, bias = case.cast()
    layer = make_layer(case, kernel, bias, "bias")
    bound, _ = bound_of(case, layer, images, kernel, bias)
    wrong = replace(
        layer, encoding=replace(layer.encoding, uniform_weight=jnp.asarray(0.501, dtype))
    )
    with pytest.raises(AssertionError, match="expected within"):
        assert_within(apply(wrong, images), exact_result(case), bound)


@pytest.mark.slow
def test_the_bound_grows_with_the_roundoff():
    case = make_case(BUCKETS[0], 1, "bfloat16")
    bounds = []
    for dtype in ("float64", "float32", "float16", "bfloat16"):
        images, kernel, bias = case.cast()
        images, kernel, bias = (part.astype(dtype) for part in (images, kernel, bias))
        layer = make_layer(case, kernel, bias, "bias")
        looser, majorant = bound_of(case, layer, images, kernel, bias)
        exact_maps = layer_error_bound(layer, images, majorant, maps_are_exact=True)
        assert (exact_maps < looser).all()
        assert_within(apply(layer, images), exact_result(case), exact_maps)
        # No rounding may be lost on the way, even where 1 + u is 1 in float64.
        keys = 9
        lengths = contraction_lengths(layer.value, layer.output, layer.heads, keys)
        working = unit_roundoff(jnp.promote_types(dtype, "float32"))
        least = (keys + sum(lengths) + 1) * working + unit_roundoff(dtype)
        assert (exact_maps >= least * majorant).all()
        bounds.append(looser.max())
    assert bounds == sorted(set(bounds))


def test_the_bound_covers_an_error_of_the_scores(monkeypatch):
    """Scores that may be off by 1/4 change a normalised weight by a factor of at most e^(1/2)."""
    images, kernel = jnp.ones((1, 5, 1), jnp.float32), jnp.ones((3, 1, 1), jnp.float32)
    score = ScoreError(np.dtype("float64"), 0.25, 0.0, 0.0)
    monkeypatch.setattr(rounding, "layer_score_error", lambda *_: score)
    layer, ones = ca.conv_to_attention(kernel), np.ones((1, 5, 1))
    rest = layer_error_bound(layer, images, ones, maps_are_exact=True) - np.expm1(0.5)
    assert (rest >= 0).all()
    assert (rest <= 2.0**-18).all()  # float32's roundings: 7 keys and 4 heads, times e^(1/2)
    # A seventh of e^-84 is above twice the smallest normal number, but not if off by e^-1.
    score = ScoreError(np.dtype("float32"), 0.5, 84.0, 0.0)
    monkeypatch.setattr(rounding, "layer_score_error", lambda *_: score)
    with pytest.raises(ValueError, match="underflow in float32"):
        layer_error_bound(layer, images, ones)


@pytest.mark.parametrize("padding", ["SAME", "MEAN"])
@pytest.mark.parametrize("maps_are_exact", [False, True])
def test_the_bound_is_that_of_the_formula(padding, maps_are_exact):
    """Π - 1 times the majorant, the mean of the image in the ring counted, and what underflows."""
    kernel = jnp.arange(12.0, dtype=jnp.bfloat16).reshape(3, 2, 1, 2)
    layer = ca.conv_to_attention(kernel, uniform_weight=0.25, padding=padding)
    images = jnp.linspace(-3.0, 2.0, 20, dtype=jnp.float32).reshape(1, 5, 4, 1)
    grid, unit = layer.token_grid((5, 4)), SINGLE
    keys, heads, offsets = 7 * 5, 7, 6
    assert (grid.number_of_keys, layer.output.shape) == (keys, (heads, 1, 2))
    spread = math.log(1 + keys * 3)  # the leak is a quarter
    factors = softmax_factors(unit, keys, gamma(15, unit) * spread, spread, 0.0)
    factors += [] if maps_are_exact else [gamma(offsets + 4, unit), NARROW]
    factors += [gamma(keys, unit), gamma(heads, unit), unit, unit]
    factors += [gamma(20 + 1, unit)] if padding == "MEAN" else []
    majorant = np.arange(40.0).reshape(1, 5, 4, 2)
    lost = underflow_bound(layer, images, grid, np.float32, np.float32, maps_are_exact)
    expected = formula_bound(factors, majorant, lost)
    bound = layer_error_bound(layer, images, majorant, maps_are_exact=maps_are_exact)
    np.testing.assert_allclose(bound, expected, rtol=RELATIVE)
    assert 0 < bound[0, 0, 0, 0] == lost


def test_where_there_is_no_bound():
    kernel, zeros = jnp.ones((3, 1, 1), jnp.float32), np.zeros((1, 7000, 1))
    images = jnp.zeros((1, 7000, 1), jnp.float32)
    with pytest.raises(ValueError, match=r"underflow in float32: .* larger leak or a wider dtype"):
        layer_error_bound(ca.conv_to_attention(kernel, uniform_weight=1e-30), images, zeros)
    assert (
        layer_error_bound(ca.conv_to_attention(kernel, uniform_weight=1e-20), images, zeros).max()
        < 1e-20
    )
    limit = ca.conv_to_attention(kernel, form="limit")
    with pytest.raises(ValueError, match="only for the exact forms"):
        layer_error_bound(limit, images, zeros)
    zero = jnp.zeros((4, 1, 1), jnp.float32)
    content = replace(ca.conv_to_attention(kernel), content=ca.ContentScores(zero, zero))
    with pytest.raises(ValueError, match="content scores"):
        layer_error_bound(content, images, zeros)


@pytest.mark.parametrize("encoding", ["bias", "scalar"])
@pytest.mark.parametrize("largest", [0.25, 3.0])
def test_what_underflow_adds_is_what_is_derived(encoding, largest):
    """8·tiny·(1 + x)(1 + v)(1 + o)(1 + g) times the lengths, the casts, and g·F·x of the maps."""
    kernel = jnp.arange(30.0, dtype=jnp.float32).reshape(3, 2, 5)
    layer = ca.conv_to_attention(kernel, encoding=encoding)
    images = jnp.asarray(np.linspace(-largest, largest / 2, 14).reshape(1, 7, 2), jnp.float32)
    grid = TokenGrid((7,), layer.ring)
    tiny, keys = float(np.finfo(np.float32).tiny), grid.number_of_keys
    gains = layer.encoding.head_gains(keys)
    gain = layer.heads if encoding == "bias" else 2 * float(gains.sum())
    value, output = place_single_map(layer.value, layer.output)
    assert value is None
    factors = (1 + largest) * 2 * (1 + float(jnp.abs(output).max())) * (1 + gain)
    expected = 8 * tiny * factors * np.prod(contraction_lengths(value, output, layer.heads, keys))
    arguments = layer, images, grid, np.float32, np.float32
    assert underflow_bound(*arguments, True) / (expected + 2 * tiny) == pytest.approx(1)
    expected += tiny * gain * 2 * largest
    assert underflow_bound(*arguments, False) / (expected + 2 * tiny) == pytest.approx(1)


def steps(jaxpr):
    """The steps of a program, those of inner programs in their place."""
    for step in jaxpr.eqns:
        subjaxpr = step.params.get("jaxpr")
        yield from [step] if subjaxpr is None else steps(getattr(subjaxpr, "jaxpr", subjaxpr))


def product_lengths(jaxpr):
    """For each product, how many terms a sum has, what was summed just before it included."""
    lengths, length = [], 1
    for step in steps(jaxpr):
        shape = step.invars[0].aval.shape
        if step.primitive.name == "reduce_sum":
            length *= int(np.prod([shape[axis] for axis in step.params["axes"]]))
        if step.primitive.name == "dot_general":
            (contracted, _), _ = step.params["dimension_numbers"]
            lengths.append(length * int(np.prod([shape[axis] for axis in contracted])))
            length = 1
    return tuple(lengths)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "output"),
    [
        (None, None),
        ((3, 5), None),
        ((5, 3), None),
        (None, (3, 5)),
        (None, (5, 3)),
        ((5, 2), (2, 7)),
        ((5, 7), (7, 2)),
    ],
    ids=str,
)
@pytest.mark.parametrize("lead", [(), (2,)], ids=["positions", "content"])
def test_contraction_lengths_are_those_of_the_sums(value, output, lead):
    heads, keys, queries = 4, 11, 6
    maps = [None if shape is None else jnp.ones((heads, *shape)) for shape in (value, output)]
    features = next((part.shape[1] for part in maps if part is not None), 3)
    tokens, weights = jnp.ones((2, keys, features)), jnp.ones((*lead, heads, queries, keys))
    lengths = contraction_lengths(*maps, heads, keys)
    program = jax.make_jaxpr(multi_head_self_attention)(tokens, weights, *maps)
    assert product_lengths(program.jaxpr) == lengths
    # A sum of n ones is n.
    result = multi_head_self_attention(tokens, weights, *maps)
    assert (np.asarray(result) == np.prod(lengths)).all()
