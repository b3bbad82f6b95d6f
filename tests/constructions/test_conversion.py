"""The heart: a converted layer is the convolution, for every encoding, regime, size and dtype."""

from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal, assert_within
from constructions.conversion_cases import BUCKETS, REGIMES, ROWS, applied, layer_program, reference
from constructions.exact_form_bounds import exact_form_bound
from constructions.lagrange import amplification
from constructions.slow_definitions import slow_conv
from hypothesis import given
from strategies import FLOATS, make_case, seeds

from convattn.application import apply_attention
from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.head_dimension import map_supports
from convattn.constructions.li_output_map import expand_groups
from convattn.constructions.regimes import ENCODINGS
from convattn.convolution import conv

every_row = pytest.mark.parametrize("row", ROWS, ids=str)


def bound_of(row, case, heads):
    count = row.geometry.heads
    kappa = None
    if row.encoding == "scalar":
        kappa = float(amplification(range(2, count + 2), row.exact))
    return exact_form_bound(
        case,
        row.geometry,
        heads,
        encoding=row.encoding,
        amplification=kappa,
        head_dim=row.head_dim,
        bias=row.bias,
    )


def compare(row, case, output, expected, heads):
    """Equal where attention is one-hot and integers fit; otherwise within `exact_form_bounds`."""
    assert_dtype(output, row.dtype)
    if row.one_hot:
        assert_equal(output, expected)
    else:
        bound = bound_of(row, case, int(heads))
        assert_within(output, expected, np.broadcast_to(bound, expected.shape))


@every_row
@given(seed=seeds())
def test_the_layer_is_the_zero_padded_convolution(row, seed):
    case = make_case(row.bucket, seed, row.dtype)
    images, kernel, bias = case.cast()
    output, heads = layer_program(row)(images, kernel, bias)
    expected = reference(images, kernel, bias if row.bias else None, **row.bucket.options)
    compare(row, case, output, expected, heads)


@pytest.mark.parametrize("row", ROWS[:: len(REGIMES) + 1], ids=str)
def test_without_compilation_it_is_the_same(row):
    case = make_case(row.bucket, 7, row.dtype)
    images, kernel, bias = case.cast()
    layer = row.convert(kernel, bias)
    given_bias = case.bias if row.bias else None
    options = {"stride": row.bucket.stride, "dilation": row.bucket.dilation}
    dense = np.asarray(expand_groups(jnp.asarray(case.kernel), row.bucket.groups))
    expected = slow_conv(case.images, dense, given_bias, **options)
    compare(row, case, apply_attention(layer, images), expected, layer.heads)


def test_the_table_reaches_every_pair_of_choices():
    def axis(row):
        bucket = row.bucket
        return {
            "regime": (row.encoding, row.exact),
            "dtype": row.dtype,
            "head_dim": row.head_dim,
            "bias": row.bias,
            "axes": bucket.axes,
            "patch": "one" if set(bucket.patch_size) == {1} else "several",
            "parity": {k % 2 for k in bucket.kernel_size} == {1},
            "stride": all(
                p % s == 0 for p, s in zip(bucket.patch_size, bucket.stride, strict=True)
            ),
            "groups": bucket.groups > 1,
            "dilation": set(bucket.dilation) != {1},
        }

    table = [axis(row) for row in ROWS]
    halves = {"bfloat16", "float16"}
    for first, second in product(table[0], repeat=2):
        pairs = {(entry[first], entry[second]) for entry in table}
        wanted = set(product({e[first] for e in table}, {e[second] for e in table}))
        refused = {  # scalar has no half form
            pair
            for pair in wanted
            if any(one in halves for one in pair)
            and any(isinstance(one, tuple) and one[0] == "scalar" for one in pair)
        }
        if first != second:
            lacking = wanted - refused - pairs
            assert not lacking, (first, second, lacking)
    assert {(row.encoding, row.exact) for row in ROWS} == set(REGIMES)
    assert {row.bucket for row in ROWS} == set(BUCKETS)


@pytest.mark.parametrize("kernel_size", [(3,), (2, 3)])
def test_kernels_of_integers_become_float32(kernel_size):
    kernel = np.arange(np.prod(kernel_size) * 2).reshape(*kernel_size, 2, 1)
    images = np.arange(24).reshape(1, *((4, 3) if len(kernel_size) == 2 else (12,)), 2)
    layer = conv_to_attention(kernel, [3], exact=False)
    assert_dtype(layer.output, "float32")
    output = apply_attention(layer, images)
    assert_dtype(output, "float32")
    assert_equal(output, slow_conv(images, kernel, np.array([3])))


CHANGES = {
    "bias": {"leak": [0.25, 0.75, 0.9375]},
    "quadratic": {"alpha": [128.0, 512.0, 4096.0]},
    "enumerated": {"alpha": [128.0, 512.0]},
}


@pytest.mark.parametrize(
    ("encoding", "name", "parameter"),
    [(e, n, p) for e, names in CHANGES.items() for n, ps in names.items() for p in ps],
)
def test_other_parameters_do_as_well(encoding, name, parameter):
    row = next(r for r in ROWS if r.encoding == encoding and r.dtype == "float32")
    case = make_case(row.bucket, 3, row.dtype)
    images, kernel, bias = case.cast()
    layer = row.convert(kernel, bias, **{name: parameter})
    expected = reference(images, kernel, bias if row.bias else None, **row.bucket.options)
    output = applied(layer, images)
    if row.one_hot:
        assert_equal(output, expected)
    else:
        bound = exact_form_bound(
            case, row.geometry, layer.heads, encoding="bias", leak=parameter,
            head_dim=row.head_dim, bias=row.bias,
        )  # fmt: skip
        assert_within(output, expected, np.broadcast_to(bound, expected.shape))


# Planted mistakes, each in a layer that is right otherwise.

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
    wrong = replace(layer, encoding=replace(layer.encoding, leak=jnp.float32(0.501)))
    expected = reference(images, kernel, bias if row.bias else None)
    with pytest.raises(AssertionError, match="too far"):
        compare(row, case, applied(wrong, images), expected, layer.heads)


# Refusals

ONES = np.ones((3, 2, 2), np.float32)
REFUSALS = {
    "exact quadratic": (
        {"encoding": "quadratic", "exact": True},
        "exact=True with encoding='quadratic', which is exact only in the limit alpha",
    ),
    "exact enumerated": (
        {"encoding": "enumerated", "exact": True},
        "exact=True with encoding='enumerated'.*use encoding='bias' or 'scalar'",
    ),
    "logit of exact bias": (
        {"encoding": "bias", "exact": True, "logit": 40.0},
        "logit=40.0 belongs to the limit form of encoding='bias'",
    ),
    "logit of bias by default": ({"logit": 40.0}, "pass exact=False or leave logit out"),
    "logit of scalar by default": (
        {"encoding": "scalar", "logit": 40.0},
        "logit=40.0 belongs to the limit form of encoding='scalar'",
    ),
    "alpha of bias": ({"alpha": 46.0}, "encoding='bias' has no such parameter.*takes logit"),
    "alpha of limit bias": (
        {"alpha": 46.0, "exact": False},
        "alpha=46.0 was given, but encoding='bias' has no such parameter",
    ),
    "alpha of scalar": (
        {"encoding": "scalar", "exact": False, "alpha": 46.0},
        "encoding='scalar' has no such parameter",
    ),
    "logit of quadratic": (
        {"encoding": "quadratic", "logit": 40.0},
        "encoding='quadratic' has no such parameter; its limit form takes alpha",
    ),
    "logit of enumerated": (
        {"encoding": "enumerated", "logit": 40.0},
        "encoding='enumerated' has no such parameter",
    ),
    "alpha zero": ({"encoding": "quadratic", "alpha": 0.0}, "alpha=0.0, but should be positive"),
    "alpha negative": ({"encoding": "enumerated", "alpha": -1.0}, "alpha=-1.0, but should be pos"),
    "alpha infinite": ({"encoding": "quadratic", "alpha": np.inf}, "alpha=inf, but .* finite"),
    "alpha NaN": ({"encoding": "quadratic", "alpha": np.nan}, "alpha=nan, but should be positive"),
    "alpha beyond float32": (
        {"encoding": "quadratic", "alpha": 1e39},
        r"alpha=1e\+39, but should be positive and finite in float32",
    ),
    "alpha below float32": ({"encoding": "quadratic", "alpha": 1e-60}, "in float32"),
    "logit zero": ({"exact": False, "logit": 0.0}, "logit=0.0, but should be positive"),
    "logit negative": ({"exact": False, "logit": -2.0}, "logit=-2.0, but should be positive"),
    "logit beyond float32": ({"exact": False, "logit": 1e39}, "finite in float32"),
    "several logits": ({"exact": False, "logit": jnp.ones(3)}, r"logit has shape \(3,\)"),
    "leak zero": ({"leak": 0.0}, "leak=0.0, but should lie strictly between 0 and 1"),
    "leak one": ({"leak": 1.0}, "leak=1.0, but should lie strictly between 0 and 1"),
    "leak negative": ({"leak": -0.5}, "leak=-0.5, but should lie"),
    "leak above one": ({"leak": 1.5}, "leak=1.5, but should lie"),
    "leak NaN": ({"leak": np.nan}, "leak=nan, but should lie"),
    "leak that float32 rounds to one": ({"leak": 1 - 1e-9}, "between 0 and 1 in float32"),
    "leak that float32 rounds to zero": ({"leak": 1e-50}, "between 0 and 1 in float32"),
    "several leaks": ({"leak": jnp.full(3, 0.5)}, r"leak has shape \(3,\)"),
    "unknown encoding": (
        {"encoding": "rotary"},
        "encoding='rotary', but should be one of bias, scalar, quadratic, enumerated",
    ),
    "head_dim zero": ({"head_dim": 0}, "head_dim=0, but should be an integer ≥ 1, or None"),
    "head_dim negative": ({"head_dim": -3}, "head_dim=-3, but should be"),
    "patch_size zero": ({"patch_size": 0}, "patch_size=0, but should be an integer ≥ 1"),
    "patch_size of two axes": ({"patch_size": (2, 2)}, r"patch_size=\(2, 2\), but should be"),
    "stride zero": ({"stride": 0}, "stride=0, but should be"),
    "dilation zero": ({"dilation": 0}, "dilation=0, but should be"),
    "groups": ({"groups": 3}, "groups=3 should divide them"),
    "groups zero": ({"groups": 0}, "groups=0, but should be an integer ≥ 1"),
}


@pytest.mark.parametrize(("options", "message"), REFUSALS.values(), ids=REFUSALS)
def test_what_does_not_go_together_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        conv_to_attention(ONES, **options)


def broken(value):
    kernel = ONES.copy()
    kernel[2, 0, 1] = value
    return kernel


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_kernels_that_are_not_finite_are_refused(value):
    message = r"kernel has 1 non-finite entries, the first at index \(2, 0, 1\)"
    with pytest.raises(ValueError, match=message):
        conv_to_attention(broken(value))
    with pytest.raises(ValueError, match="bias has 1 non-finite"):
        conv_to_attention(ONES, np.array([1, value], np.float32))


@pytest.mark.parametrize("shape", [(3, 3), (3,), (3, 3, 3, 1, 1), (0, 1, 1), (3, 3, 0, 1)])
def test_shapes_that_are_no_kernel_are_refused(shape):
    with pytest.raises(ValueError, match=r"kernel\.shape="):
        conv_to_attention(np.ones(shape, np.float32))


def test_a_bias_of_another_length_is_refused():
    with pytest.raises(ValueError, match=r"bias.shape=\(3,\), but should be \(2,\)"):
        conv_to_attention(ONES, np.ones(3, np.float32))


@pytest.mark.parametrize(
    ("shape", "dtype", "refused"),
    [
        ((3, 1, 1), "float32", False),
        ((7, 1, 1), "float32", True),
        ((3, 3, 1, 1), "float32", True),
        ((3, 3, 1, 1), "float64", False),
        ((5, 5, 1, 1), "float64", True),
        ((2, 1, 1), "bfloat16", True),
        ((3, 1, 1), "float16", True),
        ((1, 1, 1), "float16", False),
        ((15, 15, 1, 1), "float64", True),  # decided without the rational numbers of 225 offsets
    ],
)
@pytest.mark.parametrize("exact", [True, False])
def test_scalar_layers_that_rounding_would_swallow_are_refused(shape, dtype, refused, exact):
    kernel = jnp.ones(shape, dtype)
    if refused:
        with pytest.raises(ValueError, match=r"amplifies rounding by .* use encoding='bias'"):
            conv_to_attention(kernel, encoding="scalar", exact=exact)
    else:
        layer = conv_to_attention(kernel, encoding="scalar", exact=exact)
        assert layer.heads == np.prod(shape[:-2]) + exact


def test_the_table_of_encodings_says_what_is_taken():
    for encoding, row in ENCODINGS.items():
        for exact in (True, False):
            if row["exact"] or not exact:
                conv_to_attention(ONES, encoding=encoding, exact=exact)
            else:
                with pytest.raises(ValueError, match="exact=True"):
                    conv_to_attention(ONES, encoding=encoding, exact=exact)
        conv_to_attention(ONES, encoding=encoding, exact=False, **{row["limit"]: 100.0})


# Compiled and differentiated


@pytest.mark.parametrize(("encoding", "exact"), REGIMES)
def test_gradients_through_the_conversion_are_those_of_the_convolution(encoding, exact):
    """Both are linear in kernel and bias, so with integer cotangents gradients are integers too.

    d/dW of Σ g·out is Σ_q g_q X_(q+t): the convolution's is exact in float64. The layer's is the
    transpose of what `exact_form_bounds` bounds, with the same factors and the majorant
    n·max|g|·max|X|·(1 + 2ε/(1-ε)), for scalar κ·n times that.
    """
    generator = np.random.default_rng(5)
    images = jnp.asarray(generator.integers(0, 9, (2, 6, 2)).astype(float))
    kernel = jnp.asarray(generator.integers(-5, 6, (3, 2, 3)).astype(float))
    bias = jnp.asarray(generator.integers(-5, 6, 3).astype(float))
    cotangent = jnp.asarray(generator.integers(-3, 4, (2, 6, 3)).astype(float))

    def through_layer(kernel, bias, images):
        layer = conv_to_attention(kernel, bias, patch_size=2, encoding=encoding, exact=exact)
        return jnp.sum(apply_attention(layer, images) * cotangent)

    def through_conv(kernel, bias, images):
        return jnp.sum(conv(images, kernel, bias) * cotangent)

    found = jax.jit(jax.grad(through_layer, argnums=(0, 1, 2)))(kernel, bias, images)
    expected = jax.jit(jax.grad(through_conv, argnums=(0, 1, 2)))(kernel, bias, images)
    for got, wanted in zip(found, expected, strict=True):
        assert np.abs(wanted).max() > 0
        if exact or encoding == "scalar":
            kappa = float(amplification((2, 3, 4), exact)) if encoding == "scalar" else 3.0
            largest = 3 * max(9 * 12, 5 * 9 * 3)  # max|g| times the largest sums of X, of W
            count = 2000  # more roundings than any summand goes through: all sizes are below 20
            assert_within(got, wanted, kappa * 12 * largest * count * np.finfo(float).eps)
        else:
            assert_equal(got, wanted)


@pytest.mark.parametrize(
    ("name", "options", "start"),
    [
        ("leak", {}, 0.3),
        ("logit", {"exact": False}, 2.0),
        ("alpha", {"encoding": "quadratic"}, 1.5),
        ("alpha", {"encoding": "enumerated"}, 1.5),
        ("logit", {"encoding": "scalar", "exact": False}, 2.0),
    ],
)
def test_parameters_may_be_traced_and_have_finite_gradients(name, options, start):
    kernel = jnp.asarray(np.random.default_rng(0).normal(size=(3, 1, 1)))
    images = jnp.asarray(np.random.default_rng(1).normal(size=(1, 5, 1)))

    def loss(parameter):
        layer = conv_to_attention(kernel, **options, **{name: parameter})
        return jnp.sum((apply_attention(layer, images) - conv(images, kernel)) ** 2)

    gradient = jax.jit(jax.grad(loss))(jnp.asarray(start))
    assert np.isfinite(gradient)
    if name != "leak":  # the exact form is the convolution at every leak
        assert abs(float(gradient)) > 1e-3
        assert float(loss(jnp.asarray(start))) > 1e-3


def test_a_converted_layer_is_a_tree_that_compiles_once_for_many_kernels():
    calls = []

    @jax.jit
    def run(layer, images):
        calls.append(1)
        return apply_attention(layer, images)

    generator = np.random.default_rng(2)
    images = generator.integers(0, 9, (1, 4, 6, 2)).astype(float)
    for _ in range(3):
        kernel = generator.integers(-4, 5, (3, 2, 2, 1)).astype(float)
        layer = conv_to_attention(kernel, patch_size=(2, 1), exact=False)
        assert_equal(run(layer, images), slow_conv(images, kernel))
    assert len(calls) == 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_layer_keeps_the_kernels_dtype(dtype):
    layer = conv_to_attention(jnp.ones((3, 1, 1), dtype), jnp.ones(1), patch_size=2, head_dim=1)
    assert layer.dtype == dtype
    for part in (layer.value, layer.output, layer.bias):
        assert_dtype(part, dtype)


def test_supports_hold_every_map_and_no_more():
    """Where a map can be nonzero: a kernel of ones is nonzero there, and nowhere else."""
    geometry = ConvolutionGeometry.of((3, 2), (2, 3))
    layer = conv_to_attention(np.ones((3, 2, 1, 2)), patch_size=(2, 3), exact=False, groups=2)
    supports = map_supports(geometry, (2, 2), 2, "bias", geometry.heads)
    assert_equal(np.asarray(layer.output) != 0, supports)
    with_uniform = map_supports(geometry, (2, 2), 2, "bias", geometry.heads + 1)
    assert_equal(with_uniform[-1], supports.any(axis=0))
    mixed = map_supports(geometry, (2, 2), 2, "scalar", geometry.heads + 1)
    assert_equal(mixed, np.broadcast_to(supports.any(axis=0), mixed.shape))
