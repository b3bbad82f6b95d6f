import numpy as np
import pytest
from lab.analysis.pictures import png_pixels, svg_ids, svg_text

import convattn as ca
from convattn.networks.diagnosis import head_maps, picture
from convattn.networks.diagnosis.picture import save_picture

SIZE = (4, 6)


@pytest.fixture(scope="module")
def layer():
    return ca.conv_to_attention(np.ones((3, 3, 1, 1)), exact=False)


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


def test_the_query_of_a_layer_is_a_pixel_and_of_maps_a_token():
    layer = ca.conv_to_attention(np.ones((3, 3, 1, 1)), patch_size=2, exact=False)
    figure = ca.plot_heads(layer, (5, 2), image_size=8)
    assert figure.axes[0].patches[1].get_xy() == (0.5, 1.5)
    maps = np.full((2, 4, 4, 4, 4), 1 / 16)
    assert ca.plot_heads(maps, (3, 1)).axes[0].patches[1].get_xy() == (0.5, 2.5)
    assert ca.plot_heads(maps).axes[0].patches[1].get_xy() == (1.5, 1.5)


def test_what_is_drawn_is_the_row_of_the_query():
    """Planted: a map whose queries and keys are exchanged is another picture."""
    maps = np.random.default_rng(0).random((2, 3, 4, 3, 4))
    drawn = np.asarray(ca.plot_heads(maps, (1, 2)).axes[1].images[0].get_array())
    assert (drawn == maps[1, 1, 2]).all()
    assert not (drawn == maps[1, :, :, 1, 2]).all()


@pytest.mark.parametrize("query", [(4, 0), (0, 6), (-1, 0), (0, 1, 2)])
def test_a_query_outside_the_image_is_refused(layer, query):
    with pytest.raises(ValueError, match=r"a row from 0 to 3 and a column from 0 to 5, in tokens"):
        ca.plot_heads(layer, query, image_size=SIZE)


def test_other_things_are_refused(layer):
    with pytest.raises(ValueError, match="but expected an AttentionLayer or attention"):
        ca.plot_heads(np.zeros((2, 3, 4, 4, 3)))
    with pytest.raises(ValueError, match="go with an AttentionLayer only"):
        ca.plot_heads(np.zeros((2, 3, 4, 3, 4)), image_size=3)
    with pytest.raises(ValueError, match="expected images or image_size"):
        ca.plot_heads(layer)


def test_without_matplotlib_it_says_how_to_install_it(layer, monkeypatch):
    monkeypatch.setattr(picture, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="convattn\\[plot\\]"):
        ca.plot_heads(layer, image_size=SIZE)
    assert head_maps.require_matplotlib is picture.require_matplotlib
