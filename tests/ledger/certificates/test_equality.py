"""The numbers of an equality certificate are the numbers of the layer that the library builds."""

from fractions import Fraction
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from ledger.certificates.verdicts import make, verdict

import convattn as ca
from convattn.constructions.scalar import lagrange_coefficients
from convattn.encodings import (
    AbsoluteEncoding,
    EnumeratedEncoding,
    PolygonEncoding,
    QuadraticGridEncoding,
)
from convattn.operators.shifts import TokenGrid
from convattn_ledger.certificates.equality import absolute_form, equality_body

# Kernel size, patch size, stride and dilation; the first five are quick.
SIZES = (
    ((3, 3), 1, 1, 1),
    ((3, 3), 16, 1, 1),
    ((7, 7), 2, 1, 1),
    ((3,), 1, 1, 1),
    ((2, 3), (4, 2), (2, 1), (1, 3)),
    ((4,), 3, 2, 2),
    ((5,), 4, 2, 1),
    ((3, 5), (2, 3), 1, 2),
    ((3, 3), 2, 3, 1),
)
LIBRARY = {  # construction: claim, options of conv_to_attention
    "quadratic": ("C20.theorem1", {"encoding": "quadratic"}),
    "bias": ("L21.theorem1", {"encoding": "bias", "form": "limit"}),
    "enumerated": ("S.dp2", {"encoding": "enumerated"}),
    "polygon": ("S.polygon", {"encoding": "polygon"}),
    "leaky": ("S.finite", {"encoding": "bias"}),
    "scalar": ("S.dp1", {"encoding": "scalar"}),
}


def certified(construction, kernel, patch, **options):
    return make(LIBRARY[construction][0], equality_body, construction, kernel, patch, **options)


def integer_kernel(size, channels):
    rng = np.random.default_rng(len(size) + size[0])
    return rng.integers(-9, 10, (*size, *channels))


def built(construction, kernel, **options):
    """The library's layer in float64."""
    options = {**LIBRARY[construction][1], **options}
    return ca.conv_to_attention(jnp.asarray(kernel, jnp.float64), **options)


def patterns(body, kernel):
    """Pattern_δ(W), `[T, P²·in, P_out²·out]`, from the certificate's own indices."""
    padded = np.pad(kernel, [*[(0, 1)] * len(body["pattern"]), (0, 0), (0, 0)])
    maps = []
    for which in product(*(range(len(axis)) for axis in body["pattern"])):
        tables = [np.array(axis[i]) for axis, i in zip(body["pattern"], which, strict=True)]
        if len(tables) == 1:
            block = padded[tables[0]].transpose(1, 2, 0, 3)  # input pixel, in, output pixel, out
        else:
            first, second = tables[0][:, None, :, None], tables[1][None, :, None, :]
            block = padded[first, second].transpose(2, 3, 4, 0, 1, 5)
        inputs = np.prod([table.shape[1] for table in tables]) * kernel.shape[-2]
        maps.append(block.reshape(inputs, -1))
    return np.array(maps)


def sparse_values(body):
    """V as a matrix of fractions, `[heads, T]`."""
    matrix = np.full((body["heads"], len(body["offsets"])), Fraction(0), object)
    for head, offset, value in body["values"]["entries"]:
        matrix[head, offset] = Fraction(value)
    return matrix


def lagrange_values(body):
    """V[h][δ] = coefficient h of master/(z - base_δ), over the denominator of δ."""
    master, bases = body["values"]["master"], body["attention"]["bases"]
    columns = []
    for base, denominator in zip(bases, body["values"]["denominators"], strict=True):
        quotient = [0] * (len(master) - 1)
        carry = 0
        for power in reversed(range(len(master) - 1)):
            carry = master[power + 1] + int(base) * carry
            quotient[power] = carry
        assert master[0] + int(base) * carry == 0
        columns.append([Fraction(entry, denominator) for entry in quotient])
    return np.array(columns, object).T


def combined(values, maps):
    """Σ_δ V[h][δ] Pattern_δ, exactly."""
    flat = np.tensordot(values, maps.reshape(len(maps), -1).astype(object), 1)
    return flat.reshape(len(values), *maps.shape[1:])


def sizes_for(construction, number):
    """One size of each construction, and the first ones of the leaky bias; the rest is slow."""
    quick = number < 5 if construction == "leaky" else number == 2
    return pytest.param(construction, *SIZES[number], marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(
    ("construction", "size", "patch", "stride", "dilation"),
    [
        sizes_for(construction, number)
        for construction in LIBRARY
        for number in range(3 if construction == "quadratic" else len(SIZES))
        if construction != "scalar"
    ],
)
def test_value_maps_are_the_layers(construction, size, patch, stride, dilation):
    """Exactly: V holds 1, 2 and -1, and the kernel integers."""
    options = {"stride": stride, "dilation": dilation}
    body = certified(construction, size, patch, **options)["body"]
    kernel = integer_kernel(size, (1, 1) if patch == 16 else (2, 3))
    layer = built(construction, kernel, patch_size=patch, **options)
    values = sparse_values(body)
    assert all(value.denominator == 1 for value in values.flat)
    expected = np.tensordot(values.astype(np.int64), patterns(body, kernel), 1)
    assert layer.value is None
    assert_equal(layer.output, expected)
    assert layer.heads == body["heads"]
    for name in ("ring", "stride", "dilation", "patch_size"):
        assert np.array_equal(body[name], getattr(layer, name)), name
    assert (body["stride_route"] == "tokens") == layer.writes_stride_to_tokens


@pytest.mark.parametrize("patch", [1, 2])
def test_scalar_value_maps_are_the_layers_but_for_rounding(patch):
    """V is rounded once and the T + 1 terms are summed in float64: γ_(T+2) Σ|V||M| bounds it."""
    body = certified("scalar", (3, 3), patch)["body"]
    kernel = integer_kernel((3, 3), (2, 3))
    layer = built("scalar", kernel, patch_size=patch)
    values, maps = lagrange_values(body), patterns(body, kernel)
    count = len(body["offsets"])
    assert values.tolist() == [list(row) for row in lagrange_coefficients(count, True)]
    u = Fraction(1, 2**53)
    gamma = (count + 2) * u / (1 - (count + 2) * u)
    output = np.vectorize(lambda number: Fraction(float(number)), otypes=[object])(layer.output)
    error = abs(output - combined(values, maps))
    bound = gamma * combined(abs(values), abs(maps))
    assert (error <= bound).all()
    assert (error > 0).any()  # so a wrong coefficient would show: V is no float64
    wrong = values.copy()
    wrong[3, 4] *= 1 + Fraction(1, 10**9)
    assert (abs(output - combined(wrong, maps)) > bound).any()


@pytest.mark.parametrize(("kernel_size", "patch"), [(3, 1), (3, 2), (5, 4)])
@pytest.mark.parametrize("construction", ["quadratic", "bias", "leaky", "enumerated", "polygon"])
def test_targets_are_where_the_encodings_look(construction, kernel_size, patch):
    size = (kernel_size,) * 2
    attention = certified(construction, size, patch)["body"]["attention"]
    options = {"sharpness": 1.0} if construction == "bias" else {}
    layer = built(construction, integer_kernel(size, (1, 1)), patch_size=patch, **options)
    encoding = layer.encoding
    targets = tuple(None if target is None else tuple(target) for target in attention["targets"])
    if construction == "quadratic":
        assert isinstance(encoding, QuadraticGridEncoding)
        return assert_equal(encoding.head_centers, np.array(targets))
    assert (*encoding.offsets, *[None] * (construction == "leaky")) == targets
    if construction in ("bias", "leaky"):
        assert_equal(encoding.values, np.eye(len(targets), len(encoding.offsets)))
    if construction == "leaky":
        assert Fraction(attention["leak"]) == Fraction(float(encoding.uniform_weight))
    elif construction == "enumerated":
        assert isinstance(encoding, EnumeratedEncoding)
        assert list(encoding.codes) == attention["codes"]
        assert encoding.spare == attention["spare"]
        assert_equal(encoding.targets, np.array(attention["codes"]))
    elif construction == "polygon":
        corners = attention["corners"]
        assert isinstance(encoding, PolygonEncoding)
        assert corners == len(targets)
        angles = np.arctan2(*np.asarray(encoding.query).T[::-1]) * corners / (2 * np.pi)
        assert_equal(np.round(angles).astype(int) % corners, np.array(attention["codes"]))


def test_the_bases_and_exponents_of_the_scalar_encoding():
    body = certified("scalar", (3, 3), 1)["body"]
    encoding = built("scalar", integer_kernel((3, 3), (1, 1))).encoding
    bases = np.array([int(base) for base in body["attention"]["bases"]], float)
    assert_equal(encoding.log_bases, np.log(bases))
    assert_equal(encoding.exponents, np.array(body["attention"]["exponents"]))
    assert encoding.offsets == tuple(map(tuple, body["offsets"]))


@pytest.mark.parametrize("target", [(0,), (-3,), (2, -1)])
@pytest.mark.quick(1)
def test_an_absolute_form_is_the_squared_distance_but_for_the_query(target):
    """As C20 eq. 3 has it: query map B, key map 1, positions (p, |p|², 1) without content."""
    axes, form = len(target), np.array(absolute_form(target))
    grid = TokenGrid((4, 5)[:axes], ((1, 2), (0, 1))[:axes])
    places = grid.key_positions
    table = np.concatenate([places, (places**2).sum(-1, keepdims=True)], -1)
    table = np.concatenate([table, np.ones((len(table), 1))], -1).reshape(*grid.keys, -1)
    shifts = places[None, :, :] - grid.query_positions[:, None, :]
    distance = ((shifts - np.array(target)) ** 2).sum(-1)

    def rest_of(form):
        query, key = jnp.asarray(form[None], float), jnp.eye(axes + 2)[None]
        scores = AbsoluteEncoding(query, key, jnp.array(table)).positional_scores(grid)
        return np.asarray(scores)[0] + distance

    rest = rest_of(form)
    assert_equal(rest, np.broadcast_to(rest[:, :1], rest.shape))
    wrong = rest_of(np.array(absolute_form([t + 1 for t in target])))
    assert (wrong != wrong[:, :1]).any()


def test_a_fixed_attention_asks_for_no_score():
    attention = equality_body("given", (3, 3))["attention"]
    assert attention["score"] == "given"
    assert {*attention} == {"family", "score", "targets"}


@pytest.mark.parametrize("construction", LIBRARY)
def test_the_checker_accepts_a_certificate(construction):
    result = verdict(certified(construction, (3, 3), 1))
    assert result.accepted, result.reason


@pytest.mark.parametrize(
    ("patch", "options", "argument"), [(0, {}, "patch_size"), (1, {"stride": (1, 2, 3)}, "stride")]
)
def test_sizes_that_make_no_sense_are_refused(patch, options, argument):
    with pytest.raises(ValueError, match=argument):
        certified("bias", (3, 3), patch, **options)
