"""The parameters of the epoch that did best on the validation images."""

import warnings
from pathlib import Path
from typing import Any

from convattn.training.checkpoints import CheckpointStore, DamagedCheckpoint
from convattn.training.state import TrainState


class BestParameters:
    """Keeps the state of the best epoch so far, the first of several equal ones.

    It is written before the run's checkpoint that knows of it, and replaces the one before. After a
    crash between the two, the run's checkpoint names an epoch that is gone; one that beats it comes
    again then, and until it does the best of the epochs since is kept. So the choice is the same.

    **Arguments:**

    - `folder`: where it lies.
    """

    def __init__(self, folder: Path) -> None:
        self.store = CheckpointStore(folder, 1)
        self.accuracy, self.step = -1.0, 0

    @property
    def record(self) -> dict[str, Any]:
        """What the run's checkpoint must know."""
        return {"best": self.accuracy, "best_step": self.step}

    def resume(self, record: dict[str, Any], like: TrainState) -> None:
        """Go on from the record of a checkpoint; what was kept after it is dropped."""
        self.store.discard_after(record["best_step"])
        if not record["best_step"]:
            return
        found = self.store.restore_newest(like)
        if found is not None and found.step == record["best_step"]:
            self.accuracy, self.step = record["best"], record["best_step"]
            return
        self.store.discard_after(-1)

    def offer(self, state: TrainState, step: int, accuracy: float) -> None:
        """Keep this state if it beats the best so far; return when it is on the disk."""
        if accuracy > self.accuracy:
            self.accuracy, self.step = accuracy, step
            self.store.save(state, self.record)
            self.store.wait()

    def take(self, like: TrainState) -> TrainState:
        """The best state.

        **Raises:** `ValueError` if it was damaged after the run had ended.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedCheckpoint)
            found = self.store.restore_newest(like, set_aside=False)
        if found is None:
            raise ValueError(
                f"the best parameters, in {self.store.folder}, are damaged or gone, and the last "
                "ones were not chosen; train in another folder"
            )
        return found.state
