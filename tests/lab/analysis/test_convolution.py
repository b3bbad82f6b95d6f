import numpy as np
import pytest
from lab.analysis.pictures import png_pixels, svg_ids, svg_text
from lab.analysis.synthetic_runs import TINY, drawn_snapshot, write_pruning, write_run
from rich.console import Console

from convattn.lab.analysis.convolution import distance_history
from convattn.lab.analysis.convolution_distance import convolution_distance
from convattn.lab.analysis.convolution_picture import distance_table, draw_distances
from convattn.lab.analysis.picture import save_picture
from convattn.lab.analysis.score_tables import attention_matrix
from convattn.lab.models.settings import EncoderSettings, ResNetSettings


def test_every_snapshot_and_layer_is_measured(tmp_path) -> None:
    found = distance_history(write_run(tmp_path / "run"), 3)
    assert found.epochs == (0, 2, 4)
    assert found.relative().shape == (3, 2)
    assert not found.linearised
    for place, epoch in enumerate(found.epochs):
        stored = drawn_snapshot(TINY, epoch)
        for layer in (1, 2):
            expected = convolution_distance(
                attention_matrix(stored[f"layer{layer}.scores"]),
                stored[f"layer{layer}.value_gram"],
                3,
            )
            assert found.layers[place][layer - 1].relative == expected.relative
            assert np.array_equal(found.layers[place][layer - 1].heads, expected.heads)


def test_epochs_can_be_thinned_out(tmp_path) -> None:
    assert distance_history(write_run(tmp_path / "run"), 3, most_epochs=2).epochs == (0, 4)


def test_content_is_linearised_and_says_so(tmp_path) -> None:
    model = EncoderSettings("content", heads=(2,), width=8)
    history = distance_history(write_run(tmp_path / "run", model), 3)
    assert history.linearised
    _, svg = save_picture(draw_distances(history, "a title"), tmp_path, "convolution")
    assert "seen at X = 0" in svg_text(svg)


def test_shift_heads_are_at_zero_all_the_time(tmp_path) -> None:
    scores = np.full((1, 7, 9), -1e4, np.float32)
    scores[0, 3, 4] = 0  # the shift (0, 0)
    layer = {"layer1.scores": scores, "layer1.value_gram": np.ones((1, 1), np.float32)}
    run = write_run(
        tmp_path / "run", EncoderSettings(heads=(1,), width=8), snapshots={0: layer, 1: layer}
    )
    assert distance_history(run).relative().tolist() == [[0], [0]]


def test_a_single_epoch_is_seen_and_a_pruned_head_keeps_its_number(tmp_path) -> None:
    run = write_run(tmp_path / "run", snapshots={3: drawn_snapshot(TINY, 3)})
    figure = draw_distances(distance_history(write_pruning(run)), "a title")
    first = figure.axes[0]
    assert {line.get_marker() for line in first.lines} == {"."}
    assert first.get_xlim() == (2, 4)
    assert [line.get_gid() for line in first.lines] == [
        *(f"layer1-head{number}" for number in (1, 3, 4)),
        "layer1",
    ]


def test_heads_are_named_by_colour_and_the_axes_by_what_they_count(tmp_path) -> None:
    run = write_pruning(write_run(tmp_path / "run"))
    figure = draw_distances(distance_history(run), "a title")
    (legend,) = figure.legends
    named = {
        text.get_text(): line.get_color()
        for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True)
    }
    assert list(named) == ["layer", "head 1", "head 2", "head 3", "head 4"]
    for axes in figure.axes:
        assert axes.get_xlabel() == "epoch"
        for line in axes.lines:
            _, _, head = line.get_gid().partition("-head")
            assert line.get_color() == named[f"head {head}" if head else "layer"]
    assert "thick black line is the distance of the whole layer to" in " ".join(
        figure.get_supxlabel().split()
    )


def test_runs_without_attention_or_snapshots_are_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match="ResNet, which has no attention"):
        distance_history(write_run(tmp_path / "resnet", ResNetSettings()))
    with pytest.raises(ValueError, match="no snapshots of the attention yet"):
        distance_history(write_run(tmp_path / "young", snapshots={}))


def test_picture_and_table_have_every_layer_and_head(tmp_path) -> None:
    model = EncoderSettings(heads=(3, 0, 2), width=8)
    history = distance_history(write_run(tmp_path / "run", model))
    png, svg = save_picture(draw_distances(history, "a title"), tmp_path, "convolution")
    assert png_pixels(png).std() > 0
    assert len(svg_ids(svg, "-head")) == 5
    # A layer without heads has no distance: no line, no figure.
    assert [name for name in svg_ids(svg, "layer") if "-" not in name] == ["layer1", "layer3"]
    assert "layer 2, no heads" in svg_text(svg)
    stored = history.to_json()["layers"][-1]
    assert stored[1] == {"relative": None, "share": None, "heads": []}
    assert stored[0]["relative"] == history.layers[-1][0].relative
    console = Console(width=100, record=True, quiet=False, file=(tmp_path / "log").open("w"))
    console.print(distance_table(history))
    text = console.export_text()
    assert "3 × 3 convolution, epoch 4" in text
    assert "no heads" in text
    assert "100.0 %" not in text
    assert f"{history.layers[-1][0].relative:.3f}" in text
