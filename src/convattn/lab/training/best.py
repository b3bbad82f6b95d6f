"""The parameters of the epoch that did best on the validation images."""

import warnings
from pathlib import Path
from typing import Any

from convattn.files import write_inside
from convattn.lab.training.checkpoints import CheckpointStore, DamagedCheckpoint, Restored
from convattn.lab.training.failures import NoWholeCheckpoint
from convattn.lab.training.state import TrainState

REACHED = "reached"


class BestParameters:
    """Keeps the state of the best epoch so far, the first of several equal ones.

    It is written before the run's checkpoint that knows of it, and replaces the one before. After a
    crash between the two, the run's checkpoint names an epoch that is gone; one that beats it comes
    again then, and until it does the best of the epochs since is kept. So the choice is the same.

    The file `reached` holds the latest step that was ever the best, written before its state. If
    the run's checkpoint names an earlier one, that one will be beaten again and is not needed. If
    it names this very one, its state must be there.

    Args:
        folder: Where it lies.
    """

    def __init__(self, folder: Path) -> None:
        self.store = CheckpointStore(folder, 1)
        self.accuracy, self.step = -1.0, 0

    @property
    def record(self) -> dict[str, Any]:
        """What the run's checkpoint must know."""
        return {"best": self.accuracy, "best_step": self.step}

    def resume(self, record: dict[str, Any], like: TrainState) -> None:
        """Go on from the record of a checkpoint; what was kept after it is dropped.

        Raises:
            ValueError: If the state that it names was damaged, and not replaced by a better one.
        """
        named = record["best_step"]
        self.store.discard_after(named)
        if not named:
            (self.store.folder / REACHED).unlink(missing_ok=True)
        elif self._kept(like, named) is not None:
            self.accuracy, self.step = record["best"], named
        elif self._reached() > named:
            self.store.discard_after(-1)
        else:
            raise self._lost(named)

    def offer(self, state: TrainState, step: int, accuracy: float) -> None:
        """Keep this state if it beats the best so far; return when it is on the disk."""
        if accuracy > self.accuracy:
            self.accuracy, self.step = accuracy, step
            self.store.folder.mkdir(parents=True, exist_ok=True)
            write_inside(self.store.folder / REACHED, str(max(step, self._reached())).encode())
            self.store.save(state, self.record)
            self.store.wait()

    def take(self, like: TrainState) -> TrainState:
        """The best state.

        Raises:
            ValueError: If it was damaged after the run had ended.
        """
        found = self._kept(like, self.step)
        if found is None:
            raise self._lost(self.step)
        return found.state

    def _kept(self, like: TrainState, step: int) -> Restored | None:
        """The state of this step, if it is there and whole."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedCheckpoint)
            try:
                found = self.store.restore_newest(like, set_aside=False)
            except NoWholeCheckpoint:
                return None
        return found if found is not None and found.step == step else None

    def _reached(self) -> int:
        path = self.store.folder / REACHED
        text = path.read_text(errors="replace") if path.exists() else ""
        return int(text) if text.isdecimal() else 0

    def _lost(self, step: int) -> ValueError:
        return ValueError(
            f"the best parameters, those of step {step} in {self.store.folder}, are damaged or "
            "gone, and no others were chosen; train in another folder"
        )
