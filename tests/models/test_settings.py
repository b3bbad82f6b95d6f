"""Settings refuse what is no architecture, and down-sampling loses nothing."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal

from convattn.models.downsampling import downsample, token_grid, upsample
from convattn.models.settings import EncoderSettings, ResNetSettings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoding": "sinusoidal"}, "expected one of quadratic"),
        ({"heads": ()}, "heads="),
        ({"heads": (9, -1)}, "heads="),
        ({"heads": (9, True)}, "heads="),
        ({"heads": (9, 2.0)}, "heads="),
        ({"width": 0}, "width=0"),
        ({"inner": 1.5}, "inner=1.5"),
        ({"downsampling": 0}, "downsampling=0"),
        ({"encoding": "content", "width": 7}, "an even number"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"attention_dropout": -0.1}, "attention_dropout=-0.1"),
        ({"norm_epsilon": -1e-9}, "norm_epsilon"),
        ({"center_variance": float("nan")}, "center_variance"),
        ({"spread_variance": float("inf")}, "spread_variance"),
    ],
)
def test_no_encoder(changes, message):
    with pytest.raises(ValueError, match=message):
        EncoderSettings(**changes)
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(EncoderSettings(), **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"channels": ()}, "channels="),
        ({"channels": (64, 0), "blocks": (1, 1)}, "channels="),
        ({"blocks": (2, 2, 2)}, "as many"),
        ({"blocks": (2, 2, 2, 0)}, "blocks="),
    ],
)
def test_no_resnet(changes, message):
    with pytest.raises(ValueError, match=message):
        ResNetSettings(**changes)


def test_lists_are_held_as_tuples():
    assert EncoderSettings(heads=[1, 2]) == EncoderSettings(heads=(1, 2))
    assert hash(ResNetSettings(channels=[4], blocks=[1])) == hash(ResNetSettings((4,), (1,)))


def test_downsampling_is_a_permutation_of_the_numbers():
    images = jnp.arange(2 * 4 * 6 * 3).reshape(2, 4, 6, 3)
    tokens = downsample(images, 2)
    for b, i, j in np.ndindex(2, 2, 3):
        square = np.asarray(images)[b, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        assert_equal(tokens[b, i, j], square.reshape(-1))
    assert_equal(upsample(tokens, 2), images)
    assert (np.asarray(upsample(tokens[..., ::-1], 2)) != np.asarray(images)).any()


@pytest.mark.parametrize("size", [(7, 8), (8,), (0, 8), (8, 8, 8), (8.0, 8)])
def test_sizes_that_do_not_fit_are_refused(size):
    with pytest.raises(ValueError, match="image_size"):
        token_grid(size, 2)
