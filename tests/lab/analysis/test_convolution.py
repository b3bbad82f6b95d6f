import pytest
from comparison import assert_equal
from lab.analysis.pictures import png_pixels, svg_ids, svg_text
from lab.analysis.synthetic_runs import TINY, random_snapshot, write_pruning, write_run
from rich.console import Console

from convattn.diagnosis.convolution_distance import convolution_distance
from convattn.diagnosis.picture import save_picture
from convattn_lab.analysis.convolution import distance_history, distance_table, draw_distances
from convattn_lab.analysis.snapshots import attention_matrix
from convattn_lab.models.settings import EncoderSettings


def test_every_snapshot_and_layer_is_measured(stored_run) -> None:
    result = distance_history(stored_run, 3)
    assert result.epochs == (0, 2, 4)
    assert not result.linearised
    for index, epoch in enumerate(result.epochs):
        stored = random_snapshot(TINY, epoch)
        for layer in (1, 2):
            expected = convolution_distance(
                attention_matrix(stored[f"layer{layer}.scores"]),
                stored[f"layer{layer}.value_gram"],
                3,
            )
            assert result.layers[index][layer - 1].relative == expected.relative
            assert_equal(result.layers[index][layer - 1].heads, expected.heads)
    assert distance_history(stored_run, 3, max_epochs=2).epochs == (0, 4)


def test_content_is_linearised_and_says_so(tmp_path) -> None:
    model = EncoderSettings("content", heads=(2,), width=8)
    history = distance_history(write_run(tmp_path / "run", model), 3)
    assert history.linearised
    caption = draw_distances(history, "a title").get_supxlabel()
    assert "seen at X = 0" in " ".join(caption.split())


def test_a_single_epoch_is_seen_and_a_pruned_head_keeps_its_number(tmp_path) -> None:
    run = write_run(tmp_path / "run", snapshots={3: random_snapshot(TINY, 3)})
    figure = draw_distances(distance_history(write_pruning(run)), "a title")
    first = figure.axes[0]
    assert {line.get_marker() for line in first.lines} == {"."}
    assert first.get_xlim() == (2, 4)
    assert [line.get_gid() for line in first.lines] == [
        *(f"layer1-head{number}" for number in (1, 3, 4)),
        "layer1",
    ]


@pytest.mark.slow
def test_picture_and_table_have_every_layer_and_head(tmp_path) -> None:
    model = EncoderSettings(heads=(3, 0, 2), width=8)
    history = distance_history(write_run(tmp_path / "run", model))
    png, svg = save_picture(draw_distances(history, "a title"), tmp_path, "convolution")
    assert png_pixels(png).std() > 0
    assert len(svg_ids(svg, "-head")) == 5
    # A layer without heads has no distance: no line, no number.
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
