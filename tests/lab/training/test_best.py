"""The best parameters are there whatever ends the run; those that were damaged are missed."""

import numpy as np
import pytest
from lab.training.test_trainer import Interrupt, judged, lines, parameters
from lab.training.tiny import run, settings

from convattn_lab.training.checkpoints import CheckpointStore
from convattn_lab.training.failures import BestLost

GIVEN = settings(select="best", learning_rate=0.5)


@pytest.mark.slow
def test_a_run_that_ends_between_the_best_and_its_checkpoint(tmp_path, monkeypatch):
    """The checkpoint before names a state that is still there."""
    expected = run(tmp_path / "whole", GIVEN, images=judged())
    save, bests = CheckpointStore.save, []

    def kill_after_the_second(store, step, arrays, record):
        if "identity" in record and len(bests) == 2:
            raise KeyboardInterrupt
        if "identity" not in record:
            bests.append(step)
        save(store, step, arrays, record)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):  # noqa: PT012
        patch.setattr(CheckpointStore, "save", kill_after_the_second)
        run(tmp_path / "run", GIVEN, images=judged())
    assert CheckpointStore(tmp_path / "run" / "best").steps() == bests[::-1]
    again = run(tmp_path / "run", GIVEN, images=judged())
    assert lines(tmp_path / "run") == lines(tmp_path / "whole")
    assert parameters(again) == parameters(expected)
    assert len(CheckpointStore(tmp_path / "run" / "best").steps()) == 1
    assert np.isfinite(again.test_loss)


@pytest.mark.slow
@pytest.mark.parametrize("gone", [False, True])
def test_one_that_was_damaged_is_missed(tmp_path, gone):
    """Also when the run is begun again a second time; begun anew it forgets the one before."""
    given = settings(select="best", epochs=2, checkpoint_minutes=60.0)
    assert run(tmp_path, given, images=judged(), snapshot=Interrupt(1)).status == "stopped"
    (step,) = CheckpointStore(tmp_path / "best").steps()
    if gone:
        (tmp_path / "best" / str(step)).rename(tmp_path / "elsewhere")
    else:
        (tmp_path / "best" / str(step) / "record" / "metadata").write_text("")
    for _ in range(2):
        with pytest.raises(BestLost, match=rf"those of step {step} in .*, are damaged or gone"):
            run(tmp_path, given, images=judged())
    (tmp_path / "checkpoints").rename(tmp_path / "others")
    assert run(tmp_path, given, images=judged()).status == "finished"
