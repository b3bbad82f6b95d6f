from dataclasses import replace

import numpy as np
import pytest
from lab.analysis.pictures import png_pixels, svg_ids, svg_text
from lab.analysis.synthetic_runs import TINY, drawn_snapshot, write_pruning, write_run

from convattn.lab.analysis.centers import (
    GaussianHeads,
    centers_of_layers,
    centers_over_training,
    omissions,
    window,
)
from convattn.lab.analysis.centers_picture import draw_centers
from convattn.lab.analysis.picture import save_picture
from convattn.lab.models.settings import EncoderSettings, ResNetSettings


def test_the_newest_snapshot_is_taken(tmp_path) -> None:
    epoch, panels = centers_of_layers(write_run(tmp_path / "run"))
    stored = drawn_snapshot(TINY, 4)
    assert epoch == 4
    assert [panel.title for panel in panels] == ["layer 1", "layer 2"]
    for number, panel in enumerate(panels, 1):
        assert panel.tokens == (4, 5)
        assert np.array_equal(panel.centers, stored[f"layer{number}.centers"])
        assert np.array_equal(panel.root_precision, stored[f"layer{number}.root_precision"])


def test_an_epoch_can_be_chosen(tmp_path) -> None:
    run = write_run(tmp_path / "run")
    assert np.array_equal(
        centers_of_layers(run, 2)[1][0].centers, drawn_snapshot(TINY, 2)["layer1.centers"]
    )
    with pytest.raises(ValueError, match=r"no snapshot of epoch 3; there are \[0, 2, 4\]"):
        centers_of_layers(run, 3)


def test_motion_shows_one_layer_at_several_epochs(tmp_path) -> None:
    run = write_run(tmp_path / "run")
    panels = centers_over_training(run, 2)
    assert [panel.title for panel in panels] == ["epoch 0", "epoch 2", "epoch 4"]
    for epoch, panel in zip((0, 2, 4), panels, strict=True):
        assert np.array_equal(panel.centers, drawn_snapshot(TINY, epoch)["layer2.centers"])
    assert [panel.title for panel in centers_over_training(run, 1, [4, 0])] == [
        "epoch 4",
        "epoch 0",
    ]


@pytest.mark.parametrize("layer", [0, 3])
def test_a_layer_that_there_is_not_is_refused(tmp_path, layer: int) -> None:
    with pytest.raises(ValueError, match=rf"layer {layer}, but .* has layers 1 to 2"):
        centers_over_training(write_run(tmp_path / "run"), layer)


@pytest.mark.parametrize("encoding", ["learned", "content"])
def test_heads_without_centres_are_refused_by_name(tmp_path, encoding) -> None:
    run = write_run(tmp_path / "run", EncoderSettings(encoding, heads=(2,), width=8))
    for analysis in (centers_of_layers, lambda path: centers_over_training(path, 1)):
        with pytest.raises(ValueError, match=rf"'{encoding}', which has no centres.* attention "):
            analysis(run)


def test_a_resnet_is_refused_by_name(tmp_path) -> None:
    run = write_run(tmp_path / "run", ResNetSettings())
    with pytest.raises(ValueError, match="ResNet, which has no attention"):
        centers_of_layers(run)


def test_a_run_without_snapshots_is_refused(tmp_path) -> None:
    run = write_run(tmp_path / "run", snapshots={})
    with pytest.raises(ValueError, match="has no snapshots of the attention yet"):
        centers_over_training(run, 1)


@pytest.mark.parametrize(("best", "shown"), [(1, 2), (2, 2), (3, 4), (4, 4)])
def test_the_snapshot_is_the_one_nearest_to_the_chosen_epoch(tmp_path, best, shown) -> None:
    validation = [0.5 if epoch == best else 0.1 for epoch in (1, 2, 3, 4)]
    run = write_run(tmp_path / "run", select="best", validation=validation)
    assert centers_of_layers(run)[0] == shown
    assert centers_of_layers(write_run(tmp_path / "last", validation=validation))[0] == 4
    young = write_run(tmp_path / "young", select="best", validation=validation, finished=False)
    assert centers_of_layers(young)[0] == 4


def test_motion_without_epochs_is_refused_and_with_one_twice_shows_it_once(tmp_path) -> None:
    run = write_run(tmp_path / "run")
    with pytest.raises(ValueError, match="--epochs has no numbers"):
        centers_over_training(run, 1, ())
    assert [panel.title for panel in centers_over_training(run, 1, (2, 2))] == ["epoch 2"]


def test_pruned_heads_keep_their_numbers_and_colours(tmp_path) -> None:
    _, panels = centers_of_layers(write_pruning(write_run(tmp_path / "run")))
    assert [panel.numbers for panel in panels] == [(1, 3, 4), (2, 3)]
    figure = draw_centers(panels, "a title")
    seen = [
        {line.get_gid(): line.get_color() for line in axes.lines}
        for axes in figure.axes
        if axes.lines
    ]
    assert list(seen[0]) == [f"panel1-head{number}-centre" for number in (1, 3, 4)]
    assert seen[0]["panel1-head3-centre"] == seen[1]["panel2-head3-centre"]
    assert seen[0]["panel1-head1-centre"] != seen[1]["panel2-head2-centre"]


def heads(centers, roots, tokens=(16, 16)) -> GaussianHeads:
    numbers = tuple(range(1, len(centers) + 1))
    parts = (np.array(centers, float), np.array(roots, float), tokens)
    return GaussianHeads("layer 1", *parts, 1, numbers)


ODD = heads(
    [[0, 0], [0, 0], [9, 0], [np.nan, 0], [1, 1], [40, 0]],
    [np.eye(2), np.zeros((2, 2)), np.eye(2), np.eye(2), np.diag([1e-9, 1.0]), np.eye(2)],
)


def test_the_window_holds_the_centres_that_lie_in_the_image() -> None:
    assert window([ODD]) == 10.5
    assert window([heads([[0, 0]], [np.eye(2)])]) == 3.5
    assert window([heads([[15, 0]], [np.eye(2)])]) == 15.5
    assert window([heads(np.zeros((0, 2)), np.zeros((0, 2, 2)))]) == 3.5


def test_what_a_picture_leaves_out_is_counted() -> None:
    # Zero and NaN have no ellipse; the stripe, the unit circle (radius 2.15) around 9 and that
    # around 40 reach beyond 10.5; NaN and 40 have their centres elsewhere.
    missing = omissions([ODD], window([ODD]))
    assert (missing.shapeless, missing.clipped, missing.outside) == (2, 3, 2)
    assert "The centre of 2 of 6 heads is outside." in missing.caption
    assert "epoch" not in missing.caption


def test_a_head_that_is_shown_at_several_epochs_counts_once() -> None:
    first = heads([[0, 0], [40, 0]], [np.eye(2), np.eye(2)])
    later = heads([[40, 0], [40, 0]], [np.eye(2), np.eye(2)])
    missing = omissions([first, later, later], 3.5)
    assert (missing.outside, missing.heads) == (2, 2)
    assert "The centre of 2 of 2 heads is outside at some epoch." in missing.caption
    apart = [first, replace(later, layer=2)]
    assert (omissions(apart, 3.5).outside, omissions(apart, 3.5).heads) == (3, 4)


def test_the_picture_has_every_head_and_ellipse(tmp_path) -> None:
    png, svg = save_picture(
        draw_centers([ODD, replace(ODD, layer=2)], "a title"), tmp_path, "centers"
    )
    assert png_pixels(png).std() > 0
    assert len(svg_ids(svg, "-query")) == 2
    assert len(svg_ids(svg, "-centre")) == 2 * 5
    for share in (50, 90):
        assert len(svg_ids(svg, f"-ellipse{share}")) == 2 * 4
    text = svg_text(svg)
    assert text.count("layer 1, 6 heads") == 2
    assert "a title" in text
    assert "No ellipse can be drawn of 4 of 12 heads." in text
    assert "The 90 % ellipse of 6 of 12 heads is clipped." in text
    assert "The centre of 4 of 12 heads is outside." in text
    assert text.count("column shift (tokens)") == 2
    assert text.count("row shift (tokens)") == 1


def test_a_layer_without_heads_is_an_empty_panel(tmp_path) -> None:
    empty = heads(np.zeros((0, 2)), np.zeros((0, 2, 2)))
    _, svg = save_picture(draw_centers([empty], "a title"), tmp_path, "centers")
    assert "layer 1, 0 heads" in svg_text(svg)
    assert not svg_ids(svg, "ellipse")
