"""What ends a run before its time."""

import os
import re
from pathlib import Path

MAX_REASON_LENGTH = 300  # characters; TensorStore's can be pages


class NonFiniteLoss(RuntimeError):
    """A loss, or what it would follow from, is not finite, so nothing more would mean anything.

    Attributes:
        step: The step, counted from 1.
        saved: The step of the newest checkpoint, or None.
    """

    def __init__(self, problem: str, step: int, rate: float, saved: int | None) -> None:
        self.step, self.saved = step, saved
        hint = (
            f"the newest checkpoint is that of step {saved}, when all was finite"
            if saved is not None
            else "no checkpoint was written before"
        )
        super().__init__(
            f"{problem} at learning rate {rate:.3g}; try a lower learning_rate, a longer warmup, "
            f"or, with bfloat16, compute_dtype=float32. Nothing of it was saved: {hint}"
        )


class ProcessesDiffer(ValueError):
    """The processes of a run were not given the same, or do not hold the same any more."""


class CheckpointNotWritten(OSError):
    """A checkpoint could not be written; what was written before it is whole."""

    def __init__(self, folder: Path, problem: Exception) -> None:
        code = re.search(r"os_error_code='(\d+)'", str(problem))  # TensorStore's, among its paths
        message = os.strerror(int(code[1])) if code else getattr(problem, "strerror", None)
        reason = message or first_line(problem)
        super().__init__(
            f"a checkpoint could not be written into {folder} ({reason}); see whether the disk "
            "is full or the folder read-only, then resume: the newest whole checkpoint still stands"
        )


def first_line(problem: Exception) -> str:
    """The first line of what an exception says, cut if it is long; or its type."""
    lines = str(problem).strip().splitlines() or [type(problem).__name__]
    return lines[0][:MAX_REASON_LENGTH]


class NoWholeCheckpoint(ValueError):
    """There are checkpoints, and all of them are damaged.

    Args:
        folder: Where they lie.
        damaged: For each step what is wrong with it.
    """

    def __init__(self, folder: Path, damaged: dict[int, str]) -> None:
        reasons = "; ".join(f"step {step}: {reason}" for step, reason in damaged.items())
        super().__init__(
            f"none of the checkpoints of {folder.parent} is whole ({folder.name}/, {reasons}); "
            f"start in another folder, or remove {folder.name}/ to begin anew"
        )


class BestLost(ValueError):
    """The best parameters of a run are damaged or gone, and no others are chosen in their place."""

    def __init__(self, folder: Path, step: int) -> None:
        super().__init__(
            f"the best parameters, those of step {step} in {folder}, are damaged or gone, and no "
            "others were chosen; train in another folder"
        )
