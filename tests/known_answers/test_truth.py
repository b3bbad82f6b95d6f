"""What is said of heads, fields and Jacobians, against JAX and against images that are changed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from known_answers.planning import KNOWN, every, planned

from convattn.compile.evaluation import node_values
from convattn.known_answers import KnownHead, KnownNetwork, known_heads, known_values
from convattn.known_answers.layers import VERTICAL, conv, filters
from convattn.known_answers.truth import _by_token

QUICK = ("shift", "strided", "circular", "corner-of-patches")


@pytest.mark.quick(1)
@pytest.mark.parametrize("network", every(QUICK))
def test_the_jacobian_of_the_logits_is_that_of_jax(network: KnownNetwork) -> None:
    """Exactly: float32 holds the numbers of one layer; those of three are rounded there."""
    images = network.example()
    values = known_values(planned(network), images)
    of_one = jax.jacobian(lambda image: network.function(image[None])[0])
    expected = np.stack([np.asarray(of_one(jnp.asarray(image))) for image in images])
    actual = values[-1].jacobian[:, 0].transpose(0, 1, 3, 4, 2)
    allowed = 0 if network.name in QUICK else 2.0**-22 * np.abs(expected).max()
    assert np.abs(actual - expected).max() <= allowed
    assert np.abs(actual - expected[:, :, ::-1, ::-1]).max() > allowed  # another kernel
    for value in values:
        inside = (value.jacobian != 0).any((0, 2, 3))
        assert inside.any()
        assert not (inside & ~value.field).any()


@pytest.mark.parametrize("network", every(QUICK[1:]))
def test_outside_of_its_field_no_pixel_matters_to_a_token(network: KnownNetwork) -> None:
    plan = planned(network)
    values = known_values(plan, network.example())
    random = np.random.default_rng(0)
    image = random.random((1, network.size, network.size, network.channels))
    before = node_values(plan.network, image)
    for row, column in random.integers(0, network.size, (6, 2)):
        changed = image.copy()
        changed[0, row, column] += 1.0
        after = node_values(plan.network, changed)
        for node, value in zip(plan.network.nodes, values, strict=True):
            moved = _by_token(node.value, after[node.value] != before[node.value]).any(-1)[0]
            if len(value.tokens) == len(moved):  # of some values, some tokens are read alone
                assert not (moved & ~value.field[:, row, column]).any(), value.name


def test_the_field_of_a_shift_is_one_pixel() -> None:
    network = KNOWN["far-shift"]
    first, second, _ = known_values(planned(network), network.example())
    assert first.field.sum((1, 2)).max() == 1
    token = 1 + 4 * 8 + 3
    field = second.field[second.tokens.tolist().index(token)]
    assert np.argwhere(field).tolist() == [[4 - 2, 3 + 1 + 2]]


def test_heads_of_a_dilated_layer_look_at_its_taps() -> None:
    first, second = known_heads(planned(KNOWN["dilated-edge"]))
    assert {head.where for head in first if head.kind == "offset"} == {
        *((row, column) for row in (-2, 0, 2) for column in (-2, 0, 2) if (row, column) != (0, 0))
    }
    assert KnownHead("mean", count=(8, 8)) in second
    assert {head.kind for head in second} <= {"mean", "unused"}


@pytest.mark.slow
def test_the_jacobian_of_a_network_with_gelu_is_that_of_jax() -> None:
    def function(images):
        return jax.nn.gelu(conv(images, filters(VERTICAL)), approximate=False).mean((1, 2))

    network = KnownNetwork("gelu", "", function)
    images = network.example()
    actual = known_values(planned(network), images)[-1].jacobian[:, 0].transpose(0, 1, 3, 4, 2)
    expected = np.asarray(jax.vmap(jax.jacobian(lambda image: function(image[None])[0]))(images))
    assert np.abs(actual - expected).max() <= 2.0**-20 * np.abs(expected).max()
    assert np.unique(expected).size > 100  # so it is not piecewise linear


def test_images_that_are_none_of_the_network_are_refused() -> None:
    network = KNOWN["shift"]
    plan, images = planned(network), network.example()
    images[1, 2, 3, 0] = np.nan
    with pytest.raises(ValueError, match="the images hold numbers that are not finite; remove"):
        known_values(plan, images)
    for wrong in (images[0], images[:0], images[:, :-1], images.transpose(0, 3, 1, 2)):
        with pytest.raises(ValueError, match=r"shape .* with 8 rows, 8 columns and 1 channels"):
            known_values(plan, wrong)
