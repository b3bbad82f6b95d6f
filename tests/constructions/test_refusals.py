"""What conversion refuses, each by name."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import convattn as ca
from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.table import CONSTRUCTIONS

ONES = np.ones((3, 2, 2), np.float32)
LIMIT = {"form": "limit"}
REFUSALS = [
    ({"sharpness": 40.0, "form": "exact"}, "sharpness=40.0 belongs to .* of encoding='bias'"),
    ({"sharpness": 40.0}, "pass form='limit' or leave sharpness"),
    ({"sharpness": 40.0, "encoding": "scalar"}, "sharpness=40.0 belongs to .*encoding='scalar'"),
    *[({"form": form}, f"form={form!r}, but expected 'exact' .*, 'limit' or None")
      for form in (True, "onehot", 1, 0.0)],
    *[({"encoding": encoding, "form": "limit", "sharpness": value},
       f"sharpness={re.escape(str(value))}, but expected a positive finite number in float32")
      for encoding in ("quadratic", "bias")
      for value in (0.0, -2.0, np.inf, np.nan, 1e39, 1e-60, 2.0**-127, jnp.float32(-1))],
    ({**LIMIT, "sharpness": jnp.ones(3)}, r"sharpness.shape=\(3,\)"),
    ({**LIMIT, "sharpness": 1j}, "sharpness=1j, but expected one real number"),
    ({"encoding": "quadratic", "sharpness": "x"}, "sharpness='x', but expected one real number"),
    *[({"uniform_weight": value},
       f"uniform_weight={value}, but expected a number strictly between 0 and 1 in float32")
      for value in (0.0, 1.0, -0.5, 1.5, np.nan, 1 - 1e-9, 1e-50)],
    ({"uniform_weight": jnp.full(3, 0.5)}, r"uniform_weight.shape=\(3,\)"),
    ({"uniform_weight": "half"}, "uniform_weight='half', but expected one real number"),
    *[({"uniform_weight": 0.1, **options},
       "uniform_weight=0.1 was given, but only the exact form of encoding='bias' has one")
      for options in ({"encoding": "quadratic"}, {"encoding": "scalar"}, LIMIT)],
    ({**LIMIT, "uniform_weight": jnp.float32(0.5)}, "only the exact form of encoding='bias'"),
    *[({"encoding": encoding}, "encoding=.*, but expected one of bias, scalar, quadratic, enumer")
      for encoding in ("alibi", ["bias"], None, 3)],
    ({"head_dim": 0}, "head_dim=0, but expected an integer ≥ 1"),
    ({"head_dim": "4"}, "head_dim='4', but expected an integer ≥ 1"),
    ({"head_dim": 10**9}, "head_dim=10*, but expected at most"),
    ({"head_dim": 2**27}, "value and output maps of 4 heads of dimens"),
    ({"patch_size": 10**23}, "patch_size=10*, but expected at most 4096"),
    *[({name: value}, f"{name}=.*, but expected an integer ≥ 1")
      for name in ("patch_size", "stride", "dilation") for value in (0, -1, (2, 2), (0,), True)],
    ({"stride": 10**30}, "stride=10*, but expected at most 1048576"),
    ({"dilation": 10**22}, "dilation=10*, but expected at most 10485"),
    ({"dilation": 10**6}, "a single query 2000001 keys, but at most"),  # its ring
    ({"groups": 3}, "groups=3 should divide them"),
    ({"groups": 0}, "groups=0, but expected an integer ≥ 1"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), REFUSALS)
@pytest.mark.usefixtures("unchecked")
def test_what_does_not_go_together_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        conv_to_attention(ONES, **options)


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
    kernel, form = jnp.ones(shape, dtype), "exact" if exact else "limit"
    convert = partial(conv_to_attention, encoding="scalar", form=form)
    if refused:
        with pytest.raises(ValueError, match=r"amplifies rounding by .* use encoding='bias'"):
            convert(kernel)
    else:
        assert jax.eval_shape(convert, kernel).heads == np.prod(shape[:-2]) + exact


def test_the_table_of_encodings_says_what_is_taken():
    for encoding, row in CONSTRUCTIONS.items():
        convert = partial(conv_to_attention, encoding=encoding)
        jax.eval_shape(partial(convert, form="limit", sharpness=100.0), ONES)
        if row.exact:
            jax.eval_shape(partial(convert, form="exact"), ONES)
            continue
        refused = f"form='exact' with encoding='{encoding}', which is exact only .*'bias' or 'sc"
        with pytest.raises(ValueError, match=refused):
            convert(ONES, form="exact")


@pytest.mark.parametrize(
    ("name", "options", "wrong", "right"),
    [
        ("uniform_weight", {}, (-0.5, 0.0, 1.0, 1.5), 0.1),
        ("sharpness", {"encoding": "quadratic"}, (-1.0, 0.0), 46.0),
    ],
)
def test_a_traced_number_outside_its_range_gives_nothing_but_nan(name, options, wrong, right):
    @jax.jit
    def run(number):
        layer = conv_to_attention(ONES, **options, **{name: number})
        return ca.apply_attention(layer, jnp.ones((1, 5, 2)))

    assert jnp.isfinite(run(right)).all()
    for number in wrong:
        assert jnp.isnan(run(number)).all()


def test_a_traced_leak_is_held_if_it_is_one():
    stored_weight = jax.jit(
        lambda uniform_weight: (
            conv_to_attention(ONES, uniform_weight=uniform_weight).encoding.uniform_weight
        )
    )
    assert stored_weight(0.25) == 0.25
    assert jnp.isnan(
        jnp.stack([stored_weight(uniform_weight) for uniform_weight in (-0.5, 0.0, 1.0, 1.5)])
    ).all()


def test_maps_too_large_are_refused_before_they_are_made():
    with pytest.raises(ValueError, match="the maps of 9 offsets from 40000 to 40000 features"):
        conv_to_attention(np.ones((3, 3, 1, 1), np.float32), patch_size=200)


def test_an_image_too_large_is_refused_before_it_is_read():
    layer = conv_to_attention(np.ones((3, 3, 1, 1), np.float32))
    with pytest.raises(ValueError, match="makes 90000 queries and 91204 keys, whose scores"):
        ca.attention_to_conv(layer, 3, image_size=300)
    narrow = conv_to_attention(np.ones((1, 1, 40, 40), np.float32), form="limit")
    with pytest.raises(ValueError, match=r"the linear map of images of \(30, 30\) pixels"):
        ca.attention_to_conv(narrow, 1, image_size=30)


def test_integers_that_floats_round_are_refused():
    exact = np.full((1, 1, 1), 2**24, np.int32)
    assert conv_to_attention(exact).dtype == jnp.float32
    for beyond in (2**24 + 1, 2**31 - 1, -(2**24) - 1):
        with pytest.raises(ValueError, match=r"kernel holds integers of int32 that float32 rounds"):
            conv_to_attention(np.full((1, 1, 1), beyond, np.int32))


def test_integers_of_64_bits_become_floats_of_64_bits():
    with jax.enable_x64(True):
        layer = conv_to_attention(np.full((1, 1, 1), 2**53, np.int64))
        assert layer.dtype == jnp.float64
        for beyond in (2**53 + 1, 2**63 - 1):
            with pytest.raises(ValueError, match="int64 that float64 rounds"):
                conv_to_attention(np.full((1, 1, 1), beyond, np.int64))
