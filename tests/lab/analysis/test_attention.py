import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from lab.analysis.pictures import png_pixels, svg_ids, svg_text
from lab.analysis.synthetic_runs import TINY, random_snapshot
from lab.models.oracle import scores
from lab.models.tiny import filled

from convattn.diagnosis.picture import save_picture
from convattn_lab.analysis.attention import (
    attended,
    draw_maps,
    image_maps,
    layer_inputs,
    mosaic,
    position_figure,
    position_maps,
)
from convattn_lab.analysis.snapshots import central_query, query_attention
from convattn_lab.models.settings import EncoderSettings
from convattn_lab.models.sizes import abstract_model

QUERY = (1, 2)
IMAGES = np.random.default_rng(0).normal(size=(3, 4, 6, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def model():
    settings = EncoderSettings("content", heads=(2, 0), width=4, inner=4)
    return filled(abstract_model(settings, classes=2, image_size=(4, 6)))


@pytest.fixture(scope="module")
def maps(model):
    """For each layer the maps of each image."""
    return image_maps(model, IMAGES, QUERY)


def test_position_maps_are_those_of_the_snapshot(stored_run) -> None:
    assert central_query(stored_run) == (2, 2)
    epoch, maps = position_maps(stored_run, QUERY)
    assert epoch == 4
    assert [layer.shape for layer in maps] == [(3, 4, 5), (2, 4, 5)]
    for number, layer in enumerate(maps, 1):
        assert_equal(
            layer, query_attention(random_snapshot(TINY, 4)[f"layer{number}.scores"], QUERY)
        )


@pytest.mark.slow
def test_the_layers_see_what_they_see_in_the_model(model) -> None:
    tokens = [tokens for _, tokens in layer_inputs(model, IMAGES)]
    last = model.layers[-1](tokens[-1])
    assert_equal(model.classifier(last.mean(axis=(1, 2))), model(jnp.asarray(IMAGES)))


@pytest.mark.slow
def test_maps_of_images_are_softmax_of_content_and_position(model, maps) -> None:
    first, second = maps
    assert second.shape == (3, 0, 2, 3)
    (_, tokens), _ = layer_inputs(model, IMAGES)
    for image, maps_of_image in zip(np.asarray(tokens, np.float64), first, strict=True):
        row = scores(model.layers[0].attention, image)[:, QUERY[0] * 3 + QUERY[1]]
        # float32: some sums of four products, and an exponential of scores below 64.
        assert np.abs(row).max() < 64
        weights = np.exp(row) / np.exp(row).sum(axis=1, keepdims=True)
        assert_within(maps_of_image.reshape(2, 6), weights, gamma(64 * 30, np.float32))


@pytest.mark.slow
def test_a_query_outside_the_image_is_refused(model, stored_run) -> None:
    with pytest.raises(ValueError, match="rows are 0 to 1 and columns 0 to 2"):
        image_maps(model, IMAGES, (2, 0))
    with pytest.raises(ValueError, match="rows are 0 to 3 and columns 0 to 4"):
        position_maps(stored_run, (0, 5))
    assert attended(model.layers[1].attention.layer(), jnp.zeros((1, 2, 3, 4)), QUERY).size == 0


def test_the_picture_has_a_map_and_a_query_for_every_head(tmp_path) -> None:
    maps = [np.full((3, 4, 5), 0.05), np.zeros((0, 4, 5)), np.full((2, 4, 5), 0.05)]
    picture = (np.zeros((8, 10, 3), np.uint8), "test image 7: frog")
    png, svg = save_picture(draw_maps(maps, QUERY, "a title", picture), tmp_path, "maps")
    assert png_pixels(png).std() > 0
    assert len(svg_ids(svg, "-map")) == 5
    assert len(svg_ids(svg, "head")) == 10
    assert len(svg_ids(svg, "image-query")) == 2
    text = svg_text(svg)
    for label in ("a title", "test image 7: frog", "layer 3", "layer 2: no heads", "head 3"):
        assert label in text
    assert "attention / most of the map" in text


def test_pruned_heads_leave_their_columns_empty(pruned_run) -> None:
    maps = [np.full((2, 2, 2), 0.25)]
    assert np.isfinite(mosaic(maps, [(1, 3)])[0]).tolist() == [1, 1, 0, 0, 0, 0, 1, 1]
    axes, bar = position_figure(pruned_run).axes
    assert bar.get_ylabel() == "attention / most of the map"
    ids = [patch.get_gid() for patch in axes.patches]
    assert [name for name in ids if name.endswith("map")] == [
        f"layer{layer}-head{head}-map" for layer, head in ((1, 1), (1, 3), (1, 4), (2, 2), (2, 3))
    ]
