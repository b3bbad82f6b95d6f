import json

import pytest
from lab.analysis.synthetic_runs import write_pruning, write_run

from convattn_lab.analysis.curves import draw_curves, run_curves


def test_the_points_are_those_of_the_metrics(stored_run) -> None:
    result = run_curves(stored_run)
    assert result.train.tolist() == [[1, 0.2], [2, 0.3], [3, 0.4], [4, 0.5]]
    assert result.test.tolist() == [[1, 0.1], [3, 0.3], [4, 0.25]]
    assert (
        result.label
        == "run stored: test accuracy 25.0 % (125 of 500), CIFAR-10, slice of 2,000 + 500"
    )


def test_the_label_has_the_note_and_says_that_a_run_is_unfinished(tmp_path) -> None:
    run = write_run(tmp_path / "jpeg", note="JPEG-recompressed", finished=False, epochs=9)
    label = run_curves(run).label
    assert "(JPEG-recompressed)" in label
    assert "unfinished, epoch 4 of 9" in label
    assert "%" not in label
    run = write_run(tmp_path / "stopped")
    stopped = {"status": "stopped", "test_accuracy": None, "test_images": 500}
    (run / "result.json").write_text(json.dumps(stopped))
    assert "unfinished, epoch 4 of 4" in run_curves(run).label


def test_a_pruned_run_goes_on_where_its_source_ended(tmp_path) -> None:
    run = write_pruning(write_run(tmp_path / "pruned"))
    result = run_curves(run)
    # It begins with what pruning alone did.
    assert result.test.tolist() == [[300, 0.05], [301, 0.1], [303, 0.3], [304, 0.25]]
    assert result.train[:, 0].tolist() == [301, 302, 303, 304]
    assert run_curves(write_pruning(run, pruned=None)).test[0, 0] == 301


def test_a_single_point_is_seen_and_ticks_are_whole_epochs(tmp_path) -> None:
    run = write_run(tmp_path / "short", train=(0.3,), test=(0.2,), epochs=1)
    axes, loss = draw_curves([run_curves(run)]).axes
    assert [line.get_marker() for line in axes.lines] == ["o", "o"]
    assert [float(y) for line in axes.lines for y in line.get_ydata()] == [30.0, 20.0]
    assert (axes.get_ylabel(), loss.get_ylabel()) == ("accuracy (%)", "loss (nats)")
    assert len(loss.lines) == 2
    assert axes.get_xlim() == (0, 2)
    axes.figure.draw_without_rendering()
    assert all(tick == int(tick) for tick in axes.get_xticks())
    long = write_run(tmp_path / "long", train=(0.3,) * 20, test=(0.2,) * 20, epochs=20)
    axes, _ = draw_curves([run_curves(long)]).axes
    assert {line.get_marker() for line in axes.lines} == {"None"}


def test_without_metrics_there_is_nothing_to_draw(tmp_path) -> None:
    run = write_run(tmp_path / "run", train=(), test=(), finished=False)
    with pytest.raises(ValueError, match="has no metrics yet"):
        run_curves(run)
