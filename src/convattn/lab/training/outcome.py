"""`Outcome`: how a run ended."""

from dataclasses import dataclass
from typing import Literal

from flax import nnx


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        status: `"finished"`, or `"stopped"` by a signal: `train` again goes on.
        step, steps: How many were taken, and how many there are in all.
        test_loss, test_accuracy: Of the chosen parameters; None if it was stopped.
        seconds: Of all sittings together, compilation and evaluations included, each up to its last
            checkpoint: what was lost and done again counts once.
        model: With the chosen parameters.
    """

    status: Literal["finished", "stopped"]
    step: int
    steps: int
    test_loss: float | None
    test_accuracy: float | None
    seconds: float
    model: nnx.Module
