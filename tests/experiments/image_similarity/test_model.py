"""The network that compares two images: what each may see of the other, what is trained."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from image_similarity.model import SimilarityNetwork
from image_similarity.settings import SimilaritySettings
from lab.models.gradients import unreached

from convattn_lab.models.sizes import parameter_count

CROSS = SimilaritySettings(channels=4, depth=2, key_features=3)
OWN = replace(CROSS, attention="own", segments="none")
JOINED = replace(CROSS, segments="concatenate", segment_features=2, scales=(1, 2))


def make_model(settings: SimilaritySettings) -> SimilarityNetwork:
    return SimilarityNetwork(settings, image_size=(8, 24), rngs=nnx.Rngs(0))


def pictures() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(2, 8, 24, 3)).astype(np.float32)


@nnx.jit
def features(model, images):
    return model.features(images)


def sees_the_other(settings: SimilaritySettings) -> bool:
    """Whether the features of x change where one pixel of z does."""
    model, images = make_model(replace(settings, depth=1)), pictures()
    before, _ = features(model, jnp.asarray(images))
    images[:, 4, 20] += 1
    after, other = features(model, jnp.asarray(images))
    assert before.shape == other.shape == (2, 2, 3, 4)
    return bool((np.asarray(before) != np.asarray(after)).any())


@pytest.mark.slow
def test_only_cross_attention_lets_an_image_see_the_other():
    assert not sees_the_other(OWN)
    assert sees_the_other(CROSS)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [JOINED, OWN], ids=["cross", "own"])
def test_the_gradient_reaches_every_parameter(settings):
    assert unreached(make_model(replace(settings, depth=1)), jnp.asarray(pictures())) == []


@pytest.mark.slow
def test_without_a_gap_the_filters_mix_the_images():
    """At equal parameters the gap changes the features: it keeps z's pixels out of x's filters."""
    model, images = make_model(replace(CROSS, depth=1)), jnp.asarray(pictures())
    assert model.layers[0].operator.gap == 1
    before, _ = features(model, images)
    model.layers[0].operator.gap = 0
    after, _ = features(model, images)
    assert (np.asarray(before) != np.asarray(after)).any()


@pytest.mark.parametrize("kind", ["cross", "own"])
def test_the_parameters_are_counted(kind):
    settings = CROSS if kind == "cross" else OWN
    channels, heads = 4, 2
    total = 27 * 2 + 2 * 2 + 9 * 2 * channels + 2 * channels  # the stem
    columns = 2 * 3 + 1 if kind == "cross" else 3
    layer = 2 * channels + 2 * channels**2
    for size in (1, 3):
        layer += heads * size**2 * channels * (channels + 2 * 3)
        layer += heads * channels**2 + heads * 2 * columns
    total += 2 * layer + channels**2 + 2 * channels + 2
    total += 2 * channels if kind == "cross" else 0
    assert parameter_count(nnx.eval_shape(lambda: make_model(settings))) == total


@pytest.mark.slow
def test_pictures_that_are_no_pairs_are_refused():
    with pytest.raises(ValueError, match="expected an even width"):
        SimilarityNetwork(CROSS, image_size=(8, 15), rngs=nnx.Rngs(0))
    with pytest.raises(ValueError, match="expected an even width"):
        make_model(OWN)(jnp.ones((1, 8, 15, 3)))
    with pytest.raises(ValueError, match="expected 2: different, same"):
        SimilarityNetwork(CROSS, classes=10, image_size=(8, 16), rngs=nnx.Rngs(0))
