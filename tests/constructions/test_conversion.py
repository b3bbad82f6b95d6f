"""The heart: a converted layer is the convolution, for every encoding, regime, size and dtype."""

from fractions import Fraction
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from constructions.conversion_cases import (
    BUCKETS,
    REGIMES,
    ROWS,
    applied,
    converted,
    layer_program,
    reference,
)
from constructions.conversion_comparison import compare
from constructions.slow_definitions import slow_conv
from hypothesis import given
from strategies import make_case, seeds

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.head_dimension import map_supports
from convattn.constructions.li_output_map import expand_groups
from convattn.fast.application import apply_attention

# At most every fifth row in `make test`, all of them in `make test-all`.
every_row = pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=[] if i % 5 == 0 else pytest.mark.slow) for i, row in enumerate(ROWS)],
    ids=str,
)


@pytest.mark.quick(3)
@every_row
@given(seed=seeds())
def test_the_layer_is_the_zero_padded_convolution(row, seed):
    case = make_case(row.bucket, seed, row.dtype)
    images, kernel, bias = case.cast()
    output, expected, heads = layer_program(row)(images, kernel, bias)
    compare(row, case, output, expected, heads)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS[:: 2 * len(REGIMES) + 1], ids=str)
def test_without_compilation_it_is_the_same(row):
    case = make_case(row.bucket, 7, row.dtype)
    images, kernel, bias = case.cast()
    layer = row.convert(kernel, bias)
    bias = case.bias if row.bias else None
    sizes = zip(row.bucket.dilation, row.bucket.kernel_size, strict=True)
    before = [d * (k - 1) // 2 for d, k in sizes]  # torch's padding="same"
    options = {"stride": row.bucket.stride, "dilation": row.bucket.dilation, "before": before}
    dense = np.asarray(expand_groups(jnp.asarray(case.kernel), row.bucket.groups))
    expected = slow_conv(case.images, dense, bias, **options)
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
        all_pairs = set(product({e[first] for e in table}, {e[second] for e in table}))
        refused = {  # scalar has no half form
            pair
            for pair in all_pairs
            if any(one in halves for one in pair)
            and any(isinstance(one, tuple) and one[0] == "scalar" for one in pair)
        }
        if first != second:
            lacking = all_pairs - refused - pairs
            assert not lacking, (first, second, lacking)
    assert {(row.encoding, row.exact) for row in ROWS} == set(REGIMES)
    assert {row.bucket for row in ROWS} == set(BUCKETS)


CHANGES = {
    "bias": {"uniform_weight": [0.25, 0.75, 0.9375]},
    "quadratic": {"sharpness": [128.0, 512.0, 4096.0]},
    "enumerated": {"sharpness": [128.0, 512.0]},
    "polygon": {"sharpness": [128.0, 300.0, 4096.0]},
    "rotary": {"sharpness": [128.0, 300.0, 4096.0]},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoding", "name", "parameter"),
    [(e, n, p) for e, names in CHANGES.items() for n, ps in names.items() for p in ps],
)
def test_other_parameters_do_as_well(encoding, name, parameter):
    kind = encoding, name == "uniform_weight", "float32"
    row = next(r for r in ROWS if (r.encoding, r.exact, r.dtype) == kind)
    case = make_case(row.bucket, 3, row.dtype)
    images, kernel, bias = case.cast()
    layer = row.convert(kernel, bias, **{name: parameter})
    expected = reference(images, kernel, bias if row.bias else None, **row.bucket.options)
    uniform_weight = parameter if name == "uniform_weight" else 0.5
    compare(row, case, applied(layer, images), expected, layer.heads, uniform_weight)


def test_supports_hold_every_map_and_no_more():
    """Where a map can be nonzero: a kernel of ones is nonzero there, and nowhere else."""
    geometry = ConvolutionGeometry.of((3, 2), (2, 3))
    layer = converted(np.ones((3, 2, 1, 2)), patch_size=(2, 3), form="limit", groups=2)
    supports = map_supports(geometry, (2, 2), 2, True, geometry.heads)
    assert_equal(np.asarray(layer.output) != 0, supports)
    with_uniform = map_supports(geometry, (2, 2), 2, True, geometry.heads + 1)
    assert_equal(with_uniform[-1], supports.any(axis=0))
    mixed = map_supports(geometry, (2, 2), 2, False, geometry.heads + 1)
    assert_equal(mixed, np.broadcast_to(supports.any(axis=0), mixed.shape))


@pytest.mark.parametrize(
    ("encoding", "options"),
    [
        ("bias", {"form": "limit", "sharpness": 10**10}),
        ("quadratic", {"sharpness": 10**12}),
        ("bias", {"uniform_weight": Fraction(1, 4)}),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_large_integers_and_fractions_are_numbers_too(encoding, options):
    kernel = np.arange(3.0).reshape(3, 1, 1)
    layer = conv_to_attention(kernel, encoding=encoding, **options)
    same = {k: float(v) if k != "form" else v for k, v in options.items()}
    rounded = conv_to_attention(kernel, encoding=encoding, **same)
    assert_equal(layer.output, rounded.output)
