"""The best parameters: chosen by validation alone, there whatever ends the run, or missed."""

from dataclasses import replace

import numpy as np
import pytest
from lab.training.test_trainer import Interrupt, parameters
from lab.training.tiny import Dense, images_with_validation, metric_lines, run, settings

from convattn_lab.training.checkpoints import CheckpointStore
from convattn_lab.training.failures import BestLost
from convattn_lab.training.metrics import read_metrics

pytestmark = pytest.mark.slow
BEST = settings(select="best", learning_rate=0.5)
SELDOM = settings(select="best", epochs=2, checkpoint_minutes=60.0)


def test_the_best_is_chosen_by_validation_alone(tmp_path):
    """Exchanging the test images' labels changes the figure, and not the choice."""
    chosen = replace(SELDOM, epochs=5, learning_rate=1.0)
    images = images_with_validation()
    outcome = run(tmp_path / "one", chosen, images=images)
    lines = read_metrics(tmp_path / "one")
    best = max(lines, key=lambda line: line["validation_accuracy"])  # the first of equal ones
    assert outcome.test_accuracy == best["test_accuracy"]
    assert outcome.test_loss == best["test_loss"]
    assert CheckpointStore(tmp_path / "one" / "best").steps() == [best["step"]]
    assert best["step"] < outcome.step == 20  # or nothing was chosen
    permuted = replace(images.test, labels=(images.test.labels + 1) % 3)
    other = run(tmp_path / "other", chosen, images=replace(images, test=permuted))
    assert parameters(other) == parameters(outcome)
    assert other.test_loss != outcome.test_loss
    last = run(tmp_path / "last", replace(chosen, select="last"), images=images)
    assert parameters(last) != parameters(outcome)
    again = run(tmp_path / "one", chosen, images=images)
    assert parameters(again) == parameters(outcome)


def test_of_equal_ones_the_first_is_the_best(tmp_path):
    run(
        tmp_path, replace(SELDOM, learning_rate=0.0), model=Dense(), images=images_with_validation()
    )
    first, second = read_metrics(tmp_path)
    assert first["validation_accuracy"] == second["validation_accuracy"]
    assert CheckpointStore(tmp_path / "best").steps() == [first["step"]]


def test_a_run_that_ends_between_the_best_and_its_checkpoint(tmp_path, monkeypatch):
    """The checkpoint before names a state that is still there."""
    images = images_with_validation()
    expected = run(tmp_path / "whole", BEST, images=images)
    save, bests = CheckpointStore.save, []

    def kill_after_the_second(store, step, arrays, record):
        if "identity" in record and len(bests) == 2:
            raise KeyboardInterrupt
        if "identity" not in record:
            bests.append(step)
        save(store, step, arrays, record)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):  # noqa: PT012
        patch.setattr(CheckpointStore, "save", kill_after_the_second)
        run(tmp_path / "run", BEST, images=images)
    assert CheckpointStore(tmp_path / "run" / "best").steps() == bests[::-1]
    again = run(tmp_path / "run", BEST, images=images)
    assert metric_lines(tmp_path / "run") == metric_lines(tmp_path / "whole")
    assert parameters(again) == parameters(expected)
    assert len(CheckpointStore(tmp_path / "run" / "best").steps()) == 1
    assert np.isfinite(again.test_loss)


@pytest.mark.parametrize(
    ("stopped", "damage"), [(True, "emptied"), (True, "moved"), (False, "emptied")]
)
def test_one_that_was_damaged_is_missed_and_not_replaced(tmp_path, stopped, damage):
    """Also a second time; begun again from nothing the run forgets the one before."""
    images, options = images_with_validation(), {"snapshot": Interrupt(1)} if stopped else {}
    outcome = run(tmp_path, SELDOM, images=images, **options)
    assert outcome.status == ("stopped" if stopped else "finished")
    (step,) = CheckpointStore(tmp_path / "best").steps()
    if damage == "moved":
        (tmp_path / "best" / str(step)).rename(tmp_path / "elsewhere")
    else:
        (tmp_path / "best" / str(step) / "record" / "metadata").write_text("")
    before = metric_lines(tmp_path)
    for _ in range(2):
        with pytest.raises(BestLost, match=rf"step {step} in .*damaged or gone"):
            run(tmp_path, SELDOM, images=images)
        assert metric_lines(tmp_path) == before
    (tmp_path / "checkpoints").rename(tmp_path / "others")
    assert run(tmp_path, SELDOM, images=images).status == "finished"
