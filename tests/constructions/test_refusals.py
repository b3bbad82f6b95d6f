"""What conversion refuses, each by name."""

import jax.numpy as jnp
import numpy as np
import pytest

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.regimes import CONSTRUCTIONS

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
    "exact rotary": (
        {"encoding": "rotary", "exact": True},
        "exact=True with encoding='rotary', which is exact only in the limit alpha",
    ),
    "exact polygon": (
        {"encoding": "polygon", "exact": True},
        "exact=True with encoding='polygon', which is exact only in the limit alpha",
    ),
    "alpha zero": ({"encoding": "quadratic", "alpha": 0.0}, "alpha=0.0, but expected a positive"),
    "alpha negative": ({"encoding": "enumerated", "alpha": -1.0}, "alpha=-1.0, but expected a pos"),
    "alpha infinite": ({"encoding": "quadratic", "alpha": np.inf}, "alpha=inf, but .* finite"),
    "alpha NaN": ({"encoding": "quadratic", "alpha": np.nan}, "alpha=nan, but expected a positive"),
    "alpha beyond float32": (
        {"encoding": "quadratic", "alpha": 1e39},
        r"alpha=1e\+39, but expected a positive finite number in float32",
    ),
    "alpha below float32": ({"encoding": "quadratic", "alpha": 1e-60}, "in float32"),
    "logit zero": ({"exact": False, "logit": 0.0}, "logit=0.0, but expected a positive"),
    "logit negative": ({"exact": False, "logit": -2.0}, "logit=-2.0, but expected a positive"),
    "logit beyond float32": ({"exact": False, "logit": 1e39}, "finite number in float32"),
    "several logits": ({"exact": False, "logit": jnp.ones(3)}, r"logit.shape=\(3,\)"),
    "leak zero": ({"leak": 0.0}, "leak=0.0, but expected a number strictly between 0 and 1"),
    "leak one": ({"leak": 1.0}, "leak=1.0, but expected a number strictly between 0 and 1"),
    "leak negative": ({"leak": -0.5}, "leak=-0.5, but expected a number"),
    "leak above one": ({"leak": 1.5}, "leak=1.5, but expected a number"),
    "leak NaN": ({"leak": np.nan}, "leak=nan, but expected a number"),
    "leak that float32 rounds to one": ({"leak": 1 - 1e-9}, "between 0 and 1 in float32"),
    "leak that float32 rounds to zero": ({"leak": 1e-50}, "between 0 and 1 in float32"),
    "several leaks": ({"leak": jnp.full(3, 0.5)}, r"leak.shape=\(3,\)"),
    "unknown encoding": (
        {"encoding": "alibi"},
        "encoding='alibi', but expected one of bias, scalar, quadratic, enumerated, polygon, rot",
    ),
    "head_dim zero": ({"head_dim": 0}, "head_dim=0, but expected an integer ≥ 1"),
    "head_dim negative": ({"head_dim": -3}, "head_dim=-3, but expected"),
    "patch_size zero": ({"patch_size": 0}, "patch_size=0, but expected an integer ≥ 1"),
    "patch_size of two axes": ({"patch_size": (2, 2)}, r"patch_size=\(2, 2\), but expected"),
    "stride zero": ({"stride": 0}, "stride=0, but expected"),
    "dilation zero": ({"dilation": 0}, "dilation=0, but expected"),
    "groups": ({"groups": 3}, "groups=3 should divide them"),
    "alpha a word": (
        {"encoding": "quadratic", "alpha": "x"},
        "alpha='x', but expected one real number",
    ),
    "logit complex": ({"exact": False, "logit": 1j}, "logit=1j, but expected one real number"),
    "leak a word": ({"leak": "half"}, "leak='half', but expected one real number"),
    "head_dim a word": ({"head_dim": "4"}, "head_dim='4', but expected an integer ≥ 1"),
    "groups zero": ({"groups": 0}, "groups=0, but expected an integer ≥ 1"),
}


@pytest.mark.parametrize(("options", "message"), REFUSALS.values(), ids=REFUSALS)
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
    kernel = jnp.ones(shape, dtype)
    if refused:
        with pytest.raises(ValueError, match=r"amplifies rounding by .* use encoding='bias'"):
            conv_to_attention(kernel, encoding="scalar", exact=exact)
    else:
        layer = conv_to_attention(kernel, encoding="scalar", exact=exact)
        assert layer.heads == np.prod(shape[:-2]) + exact


def test_the_table_of_encodings_says_what_is_taken():
    for encoding, row in CONSTRUCTIONS.items():
        for exact in (True, False):
            if row.exact or not exact:
                conv_to_attention(ONES, encoding=encoding, exact=exact)
            else:
                with pytest.raises(ValueError, match="exact=True"):
                    conv_to_attention(ONES, encoding=encoding, exact=exact)
        conv_to_attention(ONES, encoding=encoding, exact=False, **{row.limit: 100.0})
