import numpy as np
import pytest
from comparison import assert_equal
from flax import nnx
from lab.analysis.pictures import png_pixels, svg_ids, svg_text

import convattn as ca
from convattn.diagnosis import head_maps, picture
from convattn.diagnosis.layers import layer_attention
from convattn.diagnosis.picture import save_picture, text_height, wrapped
from convattn.nnx import AttentionConv

SIZE = (4, 6)
WHAT = ("map", "query")


@pytest.fixture(scope="module")
def layer():
    return ca.conv_to_attention(np.ones((3, 3, 1, 1)), form="limit")


@pytest.mark.slow
def test_heads_are_numbered_the_query_is_marked_and_there_is_a_colour_bar(layer, tmp_path):
    figure = ca.plot_heads(layer, (1, 2), image_size=SIZE, title="nine heads")
    panels, bar = figure.axes[:9], figure.axes[-1]
    assert [axes.get_title() for axes in panels] == [f"head {n}" for n in range(1, 10)]
    assert bar.get_ylabel() == "attention"
    for number, axes in enumerate(panels):
        pixels = np.asarray(axes.images[0].get_array())
        assert pixels.shape == SIZE
        assert pixels[1 + number // 3 - 1, 2 + number % 3 - 1] == pixels.sum() == 1
        square = next(p for p in axes.patches if p.get_gid() == f"head{number + 1}-query")
        assert square.get_xy() == (1.5, 0.5)
    assert len({id(axes.images[0].norm) for axes in panels}) == 1
    png, svg = save_picture(figure, tmp_path, "heads")
    assert png_pixels(png).std() > 0
    assert len(svg_ids(svg, "-query")) == 9
    assert "nine heads" in svg_text(svg)


@pytest.mark.slow
def test_the_query_of_a_layer_is_a_pixel_and_of_maps_a_token():
    layer = ca.conv_to_attention(np.ones((3, 3, 1, 1)), patch_size=2, form="limit")
    figure = ca.plot_heads(layer, (5, 2), image_size=8)
    assert figure.axes[0].patches[1].get_xy() == (0.5, 1.5)
    maps = np.full((2, 4, 4, 4, 4), 1 / 16)
    assert ca.plot_heads(maps, (3, 1)).axes[0].patches[1].get_xy() == (0.5, 2.5)
    assert ca.plot_heads(maps).axes[0].patches[1].get_xy() == (1.5, 1.5)


def test_what_is_drawn_is_the_row_of_the_query():
    """Planted: a map whose queries and keys are exchanged is another picture."""
    maps = np.random.default_rng(0).random((2, 3, 4, 3, 4))
    panel = np.asarray(ca.plot_heads(maps, (1, 2)).axes[1].images[0].get_array())
    assert (panel == maps[1, 1, 2]).all()
    assert not (panel == maps[1, :, :, 1, 2]).all()


@pytest.mark.parametrize("query", [(4, 0), (0, 6), (-1, 0), (0, 1, 2)])
def test_a_query_outside_the_image_is_refused(layer, query):
    with pytest.raises(ValueError, match=r"a row from 0 to 3 and a column from 0 to 5, in tokens"):
        ca.plot_heads(layer, query, image_size=SIZE)


def test_a_query_outside_is_told_the_pixels_of_patches():
    layer = ca.conv_to_attention(np.ones((3, 3, 1, 1)), patch_size=2, form="limit")
    said = r"query=\(8, 0\), but expected a row from 0 to 7 and a column from 0 to 11, in pixels$"
    with pytest.raises(ValueError, match=said):
        ca.plot_heads(layer, (8, 0), image_size=(8, 12))


def test_colours_reach_to_the_largest_attention_and_no_place_is_left_over():
    """Eight heads in two rows of six: titles, outlines and the bar, and four places are empty."""
    maps = np.random.default_rng(0).random((8, 3, 5, 3, 5)) / 4
    figure = ca.plot_heads(maps)
    panels = figure.axes[:12]
    attention = maps[:, 1, 2]  # of the token in the middle
    for number, axes in enumerate(panels[:8]):
        assert (np.asarray(axes.images[0].get_array()) == attention[number]).all()
        norm = axes.images[0].norm
        assert (norm.vmin, norm.vmax, norm.gamma) == (0, attention.max(), 0.5)
        grid, query = axes.patches
        assert (grid.get_xy(), grid.get_width(), grid.get_height()) == ((-0.5, -0.5), 5, 3)
        assert (query.get_xy(), query.get_width(), query.get_height()) == ((1.5, 0.5), 1, 1)
        assert [grid.get_gid(), query.get_gid()] == [f"head{number + 1}-{x}" for x in WHAT]
    assert not any(axes.axison for axes in panels)
    assert [len(axes.images) for axes in panels] == [1] * 8 + [0] * 4
    assert len(figure.axes) == 13
    width, height = figure.get_size_inches()
    bare = height - text_height(wrapped(head_maps.CAPTION, width - 0.2, 8), 8.0)
    assert width == pytest.approx(1.5 * 6 + 0.9, rel=1e-12)
    assert bare == pytest.approx(2 * (1.5 * 3 / 5 + 0.25), rel=1e-12)


def test_attention_to_nothing_has_a_scale_of_colours():
    maps = np.zeros((1, 2, 2, 2, 2))
    assert ca.plot_heads(maps).axes[0].images[0].norm.vmax == 1e-12


@pytest.mark.parametrize("shape", [(2, 3, 4, 3), (2, 3, 4, 4, 3), (0, 3, 4, 3, 4), (2, 0, 4, 0, 4)])
def test_maps_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match="but expected an AttentionLayer or attention"):
        ca.plot_heads(np.zeros(shape))


@pytest.mark.slow
def test_attention_is_averaged_over_images(layer):
    """Of a layer with content; what goes to the ring is not shown."""
    from diagnosis.test_layers import content_layer

    pixels = np.random.default_rng(0).normal(size=(3, 4, 5, 3))
    mean = layer_attention(content_layer(), pixels, None).attention.mean(axis=0)
    figure = ca.plot_heads(content_layer(), (1, 2), images=pixels)
    for head, axes in enumerate(figure.axes[:2]):
        panel = np.asarray(axes.images[0].get_array())
        assert (panel == mean[head, 7].reshape(4, 5)).all()


def test_other_things_are_refused(layer):
    with pytest.raises(ValueError, match="go with an AttentionLayer only"):
        ca.plot_heads(np.zeros((2, 3, 4, 3, 4)), image_size=3)
    with pytest.raises(ValueError, match="expected images or image_size"):
        ca.plot_heads(layer)


def test_without_matplotlib_it_says_how_to_install_it(layer, monkeypatch):
    monkeypatch.setattr(picture, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="convattn\\[plot\\]"):
        ca.plot_heads(layer, image_size=SIZE)
    with pytest.raises(ValueError, match="convattn\\[plot\\]"):
        ca.plot_heads(layer)  # before anything else is looked at
    assert head_maps.require_matplotlib is picture.require_matplotlib


@pytest.mark.slow
def test_an_attention_conv_is_a_layer():
    """The maps are those at stride 1, up to the last query that an output takes."""
    conv = AttentionConv(2, 4, (3, 3), strides=2, feature_group_count=2, rngs=nnx.Rngs(0))
    maps = ca.attention_maps(conv, (5, 6))
    assert maps.weights.shape[:3] == (10, 5, 5)  # XLA's SAME of 6 columns takes 0, 2 and 4
    expected = ca.attention_maps(conv.group_layer(), (5, 6)).weights
    assert_equal(maps.weights, expected)
    assert len(ca.plot_heads(conv, (2, 3), image_size=(5, 6)).axes) == 13


@pytest.mark.parametrize("query", [4, (4,), None])
@pytest.mark.quick(1)
def test_a_layer_of_sequences_is_drawn_in_one_row(query):
    layer = ca.conv_to_attention(np.ones((3, 1, 1), np.float32), form="limit")
    figure = ca.plot_heads(layer, query, image_size=9)
    middle = np.asarray(figure.axes[1].images[0].get_array())
    assert middle.shape == (1, 9)
    assert middle[0].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]
    first = np.asarray(figure.axes[0].images[0].get_array())
    assert first[0].argmax() == 3
    with pytest.raises(ValueError, match="was given no images, but expected images or image_size"):
        ca.plot_heads(layer, query)


@pytest.mark.slow
def test_a_causal_layer_is_drawn_where_it_reads():
    """Output 5 reads the elements 3, 4 and 5."""
    layer = ca.conv_to_attention(np.ones((3, 1, 1)), form="limit", padding="CAUSAL")
    figure = ca.plot_heads(layer, 5, image_size=9)
    panels = [np.asarray(axes.images[0].get_array())[0] for axes in figure.axes[:3]]
    assert np.argmax(panels, axis=1).tolist() == [3, 4, 5]
    assert figure.axes[0].patches[1].get_xy() == (4.5, -0.5)
