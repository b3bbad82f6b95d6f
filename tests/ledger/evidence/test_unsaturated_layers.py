"""Limit layers at moderate sharpness: the evidence fails on planted errors; claims pass by it."""

import jax.numpy as jnp
import numpy as np
import pytest

import convattn as ca
from convattn_ledger import EvidenceFailed, Level
from convattn_ledger.evidence import unsaturated_layers as module
from convattn_ledger.evidence.unsaturated_layers import near_convolution, rounding_bound


def evidence(**options):
    return near_convolution(
        "here", **{"encoding": "bias", "sharpness": (3,), "dtypes": ("float32",), **options}
    )


@pytest.mark.parametrize(
    ("name", "factor", "message"),
    [
        ("saturation_error_bound", 1e-3, "exceed the bound"),
        ("rounding_bound", 1e12, "nothing was seen of saturation"),
    ],
)
@pytest.mark.quick(1)
def test_a_wrong_bound_fails(run, few_images, monkeypatch, name, factor, message):
    right = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args, **kwargs: factor * right(*args, **kwargs))
    with pytest.raises(EvidenceFailed, match=message):
        evidence().check(run)
    assert (evidence().level, evidence().quick) == (Level.BOUNDED, False)


def test_scores_must_be_exact():
    kernel = jnp.ones((3, 3, 1, 1))
    layer = ca.conv_to_attention(kernel, form="limit", sharpness=2.5)
    images = np.ones((1, 4, 4, 1), int)
    with pytest.raises(ValueError, match="not integers below"):
        rounding_bound(layer, images, layer.ring, "float32")
