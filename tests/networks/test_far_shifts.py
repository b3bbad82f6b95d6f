"""What heads do at shifts that an image does not have, against the weights of a larger image."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from convattn.constructions.conversion import conv_to_attention
from convattn.encodings import (
    AbsoluteEncoding,
    AxialRotaryEncoding,
    GaussianEncoding,
    LearnedEncoding,
    QuadraticEncoding,
    QuadraticGridEncoding,
    RelativeEncoding,
    RotaryEncoding,
)
from convattn.encodings.layer import AttentionLayer
from convattn.networks import far_shifts
from convattn.networks.far_shifts import beyond_image

ONE = jnp.ones((1, 1, 1))


def layer_of(encoding, axes=1):
    """One head of that encoding, without a ring."""
    ones = (1,) * axes
    return AttentionLayer(encoding, None, ONE, None, None, ones, ones, ones, ((0, 0),) * axes)


def relative_norm(encoding, observed, side):
    """The part of one head beyond some shifts: its softmax written out, on sequences."""
    shifts = np.arange(-side, side + 1)[:, None]
    weights = np.exp(np.asarray(encoding.shift_scores(shifts, len(shifts)), float)[0])
    weights /= weights.sum()
    far = abs(shifts[:, 0]) > observed
    return np.linalg.norm(weights[far]) / np.linalg.norm(weights)


TABLE = jnp.zeros((41, 1)).at[40].set(3.0)
ROTARY = jnp.array([[1 / 32, 1 / 8]]), jnp.array([[2.0, 1.0]]), jnp.array([[1.0, 0.5]])


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("encoding", "side"),
    [
        (LearnedEncoding(jnp.ones((1, 1)), (TABLE,)), 20),
        (RelativeEncoding(jnp.ones((1, 1)), ONE, TABLE), 20),
        (QuadraticEncoding(jnp.array([0.1]), jnp.array([[15.5]])), 16),
        (QuadraticGridEncoding((jnp.array([0.1]),), (jnp.array([-15.5]),), ((0,),)), 16),
        (GaussianEncoding(jnp.array([[15.5]]), jnp.array([[[0.3]]])), 16),
        (RotaryEncoding(ROTARY[0][..., None], *ROTARY[1:]), 32),
        (RotaryEncoding(ROTARY[0][..., None] * 0.9, *ROTARY[1:], (24,)), 24),
        (AxialRotaryEncoding(*((part,) for part in ROTARY)), 32),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_stands_beyond_an_image(encoding, side, monkeypatch):
    monkeypatch.setattr(far_shifts, "_AT_ONCE", 16)  # in several parts, the last one shorter
    shifts = beyond_image(layer_of(encoding), (8,))
    assert shifts.distance == pytest.approx(relative_norm(encoding, 7, side), rel=1e-5)
    assert shifts.distance > 0.2
    assert shifts.largest_image is None
    assert beyond_image(layer_of(encoding), (side + 1,)).distance == 0


@pytest.mark.slow
def test_weights_that_are_a_product_over_the_axes_are_summed_as_all():
    """The same scores of images, as rotary positions along axes and of any direction."""
    turns = jnp.array([[0.125], [0.25]]), jnp.array([[0.0625], [0.125]])
    parts = tuple(jnp.array([[a], [b]]) for a, b in ((1.0, 2.0), (0.5, -1.0)))
    axial = AxialRotaryEncoding(turns, parts, parts[::-1])
    mixed = RotaryEncoding(
        jnp.stack([jnp.eye(2)[axis] * part for axis, part in enumerate(turns)], axis=1),
        jnp.hstack(parts),
        jnp.hstack(parts[::-1]),
    )
    maps = jnp.array([[[1.0, 2.0]], [[-1.0, 0.5]]])
    one, other = (
        beyond_image(replace(layer_of(encoding, 2), output=maps), (4, 5))
        for encoding in (axial, mixed)
    )
    assert one.distance == pytest.approx(other.distance, rel=1e-6)
    assert 0.1 < one.distance < 1


def test_a_uniform_head_that_cancels_leaves_no_more_than_rounding():
    layer = conv_to_attention(jnp.arange(9.0).reshape(3, 3, 1, 1))
    offsets = tuple((a, 6 * b) for a, b in layer.encoding.offsets)
    shifts = beyond_image(replace(layer, encoding=replace(layer.encoding, offsets=offsets)), (4, 4))
    assert shifts.distance > 0.1
    spread = replace(
        layer.encoding,
        offsets=(*layer.encoding.offsets, (0, 60)),
        values=jnp.pad(layer.encoding.values, ((0, 0), (0, 1))),
    )
    shifts = beyond_image(replace(layer, encoding=spread), (8, 8))
    assert shifts.distance <= shifts.rounding < 1e-5
    assert shifts.largest_image is None


def test_what_cannot_be_settled_names_the_largest_image(monkeypatch):
    """Sinusoids; positions that are no shifts; more shifts than are looked at."""
    monkeypatch.setattr(far_shifts, "MAX_SCORES", 2**18)
    sinusoids = RelativeEncoding(jnp.ones((1, 4)), jnp.ones((1, 4, 4)))
    (side,) = beyond_image(layer_of(sinusoids), (8,)).largest_image
    assert side > 1000
    absolute = AbsoluteEncoding(jnp.ones((1, 4, 4)), jnp.ones((1, 4, 4)))
    assert beyond_image(layer_of(absolute), (8,)).largest_image == (8,)
    layer = conv_to_attention(jnp.ones((3, 3, 1, 1)), form="limit")
    far = replace(layer.encoding, offsets=((10**5, 10**5), *layer.encoding.offsets[1:]))
    sides = beyond_image(replace(layer, encoding=far), (8, 8)).largest_image
    assert all(50 < side < 10**3 for side in sides)
