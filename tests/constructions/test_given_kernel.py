"""One given kernel with one head more than its rank."""

from collections import Counter
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from constructions.conversion_cases import applied, reference
from constructions.rational_layers import RATIONAL, as_fractions, rational_layer
from constructions.slow_definitions import slow_conv, slow_token_maps
from strategies import make_case

from convattn.bounds.flattened_kernel import exact_rank, flattened_kernel
from convattn.bounds.kernel_heads import count_heads_of_kernel
from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.given_kernel import given_kernel_layer, mixture_heads
from convattn.constructions.row_basis import (
    concrete_kernel,
    distinct_rows,
    exact_entries,
    is_clearly_of_full_rank,
    row_basis,
)
from convattn.encodings.bias import BiasEncoding
from convattn.fast.application import apply_attention
from convattn_ledger.bounds.mixture_error import given_kernel_majorant, mixture_error_bound
from convattn_ledger.evidence import exact_convolution


def low_rank(kernel, keep):
    """The same kernel with all taps but some the multiples of the first."""
    flat = kernel.reshape(-1, *kernel.shape[-2:]).copy()
    flat[keep:] = flat[:1] * (1 + np.arange(len(flat) - keep) % 3)[:, None, None]
    return flat.reshape(kernel.shape)


@pytest.mark.parametrize("bucket", RATIONAL[:3])
def test_the_distinct_rows_are_those_of_the_flattened_kernel(bucket):
    """As often as they say, whatever the dilation."""
    kernel = make_case(bucket, 4).kernel
    geometry = ConvolutionGeometry.of(bucket.kernel_size, bucket.patch_size, 1, bucket.dilation)
    rows, counts = distinct_rows(kernel, geometry)
    flattened = flattened_kernel(kernel, bucket.patch_size, dilation=bucket.dilation)
    actual = Counter[tuple[int, ...]]()
    for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
        actual[tuple(row)] += count
    assert actual == Counter(map(tuple, flattened.tolist()))


@pytest.mark.parametrize("keep", [1, 2])
@pytest.mark.parametrize("bucket", RATIONAL[:3])
def test_in_rational_numbers_the_layer_is_the_convolution(bucket, keep):
    case = make_case(bucket, 3)
    kernel = low_rank(case.kernel, keep)
    geometry = ConvolutionGeometry.of(bucket.kernel_size, bucket.patch_size, 1, bucket.dilation)
    maps = slow_token_maps(as_fractions(kernel), bucket.patch_size, dilation=bucket.dilation)
    basis, pivots = row_basis(distinct_rows(exact_entries(kernel), geometry)[0])
    weights, coefficients = mixture_heads(basis)
    flattened = flattened_kernel(kernel, bucket.patch_size, dilation=bucket.dilation)
    assert len(weights) == exact_rank(flattened) + 1
    assert weights.min() >= 0
    offsets = list(maps)
    chosen = [maps[offsets[pivot]] for pivot in pivots]

    def heads(count):
        def row(weight):
            def attention(hit):
                scores = [Fraction(1)] * count
                for offset, w in zip(offsets, weight, strict=True):
                    scores[hit[offset]] += count * w
                return [score / sum(scores) for score in scores]

            return attention

        return [
            (row(weight), sum(c * part for c, part in zip(line, chosen, strict=True)))
            for weight, line in zip(weights, coefficients, strict=True)
        ]

    output = rational_layer(case.images, bucket.patch_size, bucket.patch_size, offsets, heads)
    assert (output == slow_conv(case.images, kernel, dilation=bucket.dilation)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "space"), [("float64", (4, 6)), ("float64", (8, 2)), ("bfloat16", (4, 6))]
)
def test_one_set_of_weights_serves_every_image_size_within_the_bound(space, dtype):
    rng = np.random.default_rng(4)
    masks, matrices = rng.integers(-2, 3, (2, 3, 3)), rng.integers(-2, 3, (2, 3, 4))
    kernel = np.einsum("rab,rij->abij", masks, matrices)
    images, bias = rng.integers(0, 9, (2, *space, 3)), rng.integers(-3, 4, 4)
    layer = given_kernel_layer(jnp.asarray(kernel, dtype), jnp.asarray(bias, dtype))
    typed = jnp.asarray(images, dtype)
    bound = mixture_error_bound(layer, typed, given_kernel_majorant(layer, kernel, bias, images))
    expected = exact_convolution(images, kernel) + bias
    result = applied(layer, typed)
    assert layer.heads == 3
    assert_dtype(result, dtype)
    assert_within(result, expected, bound)
    halved = np.asarray(result, np.float64) / 2
    with pytest.raises(AssertionError, match="too far"):
        assert_within(halved, expected, bound if dtype == "float64" else bound * 0)


def test_a_full_rank_kernel_takes_the_heads_of_s_finite():
    kernel = jnp.asarray(np.arange(9.0).reshape(3, 1, 3) ** 2 + np.eye(3)[:, None, :])
    layer = given_kernel_layer(kernel)
    assert_equal(layer.encoding.weights, np.eye(4, 3))
    assert layer.heads == 4


SOBEL = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]], np.float32)[..., None, None]


@pytest.mark.parametrize(
    ("options", "heads"),
    [
        ({"stride": 2, "padding": "SAME"}, 2),
        ({"groups": 2, "padding": "EDGE"}, 2),
        ({"patch_size": 2}, 7),
    ],
)
@pytest.mark.quick(1)
def test_the_fewest_heads_of_a_kernel_are_the_convolution(options, heads):
    groups = options.get("groups", 1)
    kernel, bias = np.tile(SOBEL, (1, 1, 1, groups)), np.arange(1.0, 1 + groups, dtype=np.float32)
    images = np.random.default_rng(0).integers(0, 9, (2, 6, 8, groups)).astype(np.float32)
    layer = conv_to_attention(kernel, bias, num_heads="min", **options)
    options.pop("patch_size", None)
    assert layer.heads == count_heads_of_kernel(SOBEL, layer.patch_size).exact == heads
    expected = reference(images, kernel, bias, **options)
    assert_within(applied(layer, images), expected, 1e-3)


@pytest.mark.parametrize("padding", ["EDGE", "MEAN"])
@pytest.mark.quick(1)
def test_on_a_filled_ring_they_are_within_their_bound(padding):
    images = np.random.default_rng(0).integers(0, 9, (1, 5, 6, 1)).astype(np.float32)
    layer = conv_to_attention(SOBEL, num_heads="min", padding=padding)
    majorant = given_kernel_majorant(layer, SOBEL, None, images)
    bound = mixture_error_bound(layer, images, majorant)
    expected = reference(images.astype(np.float64), SOBEL.astype(np.float64), padding=padding)
    assert_within(applied(layer, images), expected, bound)
    zeros = applied(conv_to_attention(SOBEL, num_heads="min"), images)
    assert (np.abs(zeros - np.asarray(expected)) > bound).any()


def test_of_a_kernel_of_full_rank_they_are_those_of_s_finite():
    kernel = np.random.default_rng(0).normal(size=(3, 3, 3, 3))
    fewest = conv_to_attention(kernel, num_heads="min")
    assert isinstance(fewest.encoding, BiasEncoding)
    assert_equal(fewest.output, conv_to_attention(kernel).output)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_heads": "few"}, "num_heads='few', but expected 'min'"),
        ({"num_heads": "min", "encoding": "scalar"}, "encoding='scalar' with num_heads='min'"),
        ({"num_heads": "min", "form": "limit"}, "form='limit' with num_heads='min'"),
        ({"num_heads": "min", "uniform_weight": 0.25}, "uniform_weight=0.25 with num_heads='min'"),
    ],
)
def test_what_does_not_go_with_the_fewest_heads(options, message):
    with pytest.raises(ValueError, match=message):
        conv_to_attention(SOBEL, **options)


@pytest.mark.slow
def test_a_kernel_of_zeros_keeps_one_idle_head():
    layer = given_kernel_layer(jnp.zeros((3, 3, 2, 1)), patch_size=2)
    assert layer.heads == 1
    assert_equal(apply_attention(layer, jnp.ones((1, 4, 4, 2))), np.zeros((1, 4, 4, 1)))


def nearly_dependent():
    return np.array([(1, 1), (1, 1 + 2.0**-20), (3, -5)])[:, None, :]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "heads"),
    [
        (nearly_dependent(), 3),
        (np.random.default_rng(0).normal(size=(3, 3, 2, 2)), 5),
        (np.random.default_rng(0).normal(size=(5, 5, 1, 3)), 4),
    ],
)
def test_well_conditioned_columns_keep_the_accuracy(kernel, heads):
    """In float32, against float64: 2⁻¹⁸ of the largest output, 64 roundings, is enough for the few
    products there are; with the first independent columns the first is off by a sixth of it.
    """
    kernel = np.asarray(kernel, np.float32)
    layer = given_kernel_layer(kernel)
    space = (8,) * (kernel.ndim - 2)
    images = np.random.default_rng(1).normal(size=(1, *space, kernel.shape[-2]))
    images = images.astype(np.float32)
    expected = slow_conv(images.astype(np.float64), kernel.astype(np.float64))
    assert layer.heads == heads
    assert_within(apply_attention(layer, images), expected, 2.0**-18 * np.abs(expected).max())


def test_a_row_of_a_negative_sum_is_turned():
    """So that its weights are small: (1, 0) and (0, 1/2) for both (2, -1)/4 and (-2, 1)/4."""
    for sign in (1, -1):
        weights, coefficients = mixture_heads(np.array([[0.5 * sign, -0.25 * sign]]))
        assert weights.tolist() == [[1, 0], [0, 0.5]]
        assert coefficients.tolist() == [[sign * 1.0], [sign * -0.75]]


def test_fractions_are_taken_as_they_are():
    kernel = np.array([[[Fraction(1, 3)]], [[Fraction(2**60, 7)]], [[Fraction(0)]]])
    assert concrete_kernel(kernel).ravel().tolist() == [Fraction(1, 3), Fraction(2**60, 7), 0]


@pytest.mark.parametrize(("least", "clearly"), [(2.0**-19, True), (2.0**-21, False), (0, False)])
def test_a_rank_is_clear_where_no_singular_value_is_a_millionth_of_another(least, clearly):
    assert is_clearly_of_full_rank(np.diag([8.0, 8 * least])) is clearly


@pytest.mark.parametrize(("entry", "name"), [(np.nan, "NaN"), (-np.inf, "an infinity")])
def test_what_is_not_finite_is_named(entry, name):
    with pytest.raises(ValueError, match=rf"kernel has {name} at index \(2, 0, 0\)"):
        given_kernel_layer(jnp.ones((3, 1, 1), "bfloat16").at[2].set(entry))


def test_refusals():
    with pytest.raises(ValueError, match="overflow float16"):
        given_kernel_layer(jnp.full((3, 3, 1, 1), 60000.0, jnp.float16))
    with pytest.raises(ValueError, match="not within jit"):
        jax.jit(lambda kernel: given_kernel_layer(kernel).output)(jnp.ones((3, 1, 1)))
    with pytest.raises(ValueError, match="rational numbers"):
        given_kernel_layer(jnp.ones((3, 1, 1)) * 1j)
    for shape in ((3, 3), (3, 3, 0, 1)):
        with pytest.raises(ValueError, match=r"kernel\.shape"):
            given_kernel_layer(jnp.ones(shape))


def test_where_weights_underflow_there_is_no_bound():
    layer = given_kernel_layer(jnp.ones((3, 1, 1)))
    encoding = type(layer.encoding)(jnp.full((2, 3), 1e38, jnp.float32), layer.encoding.offsets)
    layer = type(layer)(encoding, None, layer.output, patch_size=(1,), ring=layer.ring)
    with pytest.raises(ValueError, match="underflow"):
        mixture_error_bound(layer, jnp.ones((1, 4, 1), jnp.float32), np.ones((1, 4, 1)))
