"""Limit layers at moderate sharpness: the evidence passes, and fails on planted errors."""

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


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["quadratic", "bias"])
@pytest.mark.parametrize("bare", [False, True])
def test_it_passes(run, few_images, encoding, bare):
    piece = evidence(encoding=encoding, bare=bare)
    assert piece.level is Level.BOUNDED
    assert not piece.quick
    line = piece.check(run)
    assert line.startswith("2 images, float32, ")
    assert ("on the bare grid" in line) == bare


@pytest.mark.parametrize(
    ("name", "factor", "message"),
    [
        ("saturation_error_bound", 1e-3, "exceed the bound"),
        ("rounding_bound", 1e12, "nothing was seen of saturation"),
    ],
)
def test_a_wrong_bound_fails(run, few_images, monkeypatch, name, factor, message):
    right = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args, **kwargs: factor * right(*args, **kwargs))
    with pytest.raises(EvidenceFailed, match=message):
        evidence().check(run)


def test_scores_must_be_exact():
    kernel = jnp.ones((3, 3, 1, 1))
    layer = ca.conv_to_attention(kernel, form="limit", sharpness=2.5)
    images = np.ones((1, 4, 4, 1), int)
    with pytest.raises(ValueError, match="not integers below"):
        rounding_bound(layer, images, layer.ring, "float32")
