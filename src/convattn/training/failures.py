"""What ends a run before its time."""


class NonFiniteLoss(RuntimeError):
    """The loss of a step is not finite, so nothing that follows would mean anything."""

    def __init__(self, step: int, loss: float, rate: float, saved: int | None) -> None:
        self.step, self.loss, self.rate, self.saved = step, loss, rate, saved
        kept = (
            f"the newest checkpoint is that of step {saved}"
            if saved is not None
            else "there is no checkpoint"
        )
        super().__init__(
            f"the loss of step {step} is {loss} at learning rate {rate:.3g}; try a lower "
            "learning_rate, a longer warmup, or, with bfloat16, compute_dtype=float32. Nothing of "
            f"this epoch was saved; {kept}"
        )
