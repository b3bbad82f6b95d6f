"""`TrainingSettings`: how a model is trained."""

import math
from dataclasses import dataclass
from typing import Literal, get_args, get_origin


@dataclass(frozen=True)
class TrainingSettings:
    """How a model is trained: as in C20, Table 2, unless a config says otherwise."""

    epochs: int = 300
    """Passes over the training images."""
    batch_size: int = 100
    """Images in a step, over all devices; a last batch that is not full is left out."""
    optimizer: Literal["sgd", "adamw"] = "sgd"
    """SGD with momentum and weight decay in the gradient, or AdamW."""
    learning_rate: float = 0.1
    """Peak learning rate."""
    warmup: float = 0.05
    """The share of all steps in which the learning rate rises linearly."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """What follows the warm-up: half a cosine down to zero, or no change."""
    momentum: float = 0.9
    """Momentum of SGD."""
    beta1: float = 0.9
    """Of AdamW: the decay of the mean of the gradients."""
    beta2: float = 0.999
    """Of AdamW: the decay of the mean of their squares."""
    epsilon: float = 1e-8
    """Of AdamW: what is added to the root of that mean."""
    weight_decay: float = 1e-4
    """Not on centres, spreads, norms, biases, class tokens and added positions."""
    label_smoothing: float = 0.0
    """The share of the target that is spread over all classes."""
    compute_dtype: Literal["float32", "bfloat16"] = "float32"
    """Of the products; parameters, norms, softmax and loss are float32."""
    devices: int | None = None
    """How many devices of each process share each batch; all of them if not given."""
    steps_per_call: int | None = None
    """The most in one call of the program; by default as many as take half a minute."""
    evaluate_every: int = 1
    """Epochs between evaluations."""
    snapshot_every: int | None = None
    """Epochs between snapshots of the attention; by default about 60 over the run."""
    checkpoint_minutes: float = 5.0
    """Minutes between checkpoints; 0 writes one after each call of the compiled program."""
    keep_checkpoints: int = 2
    """How many of the newest are kept."""
    select: Literal["last", "best"] = "last"
    """The parameters tested at the end: the last, or the best on the validation images."""
    seed: int = 0
    """Of everything that is drawn."""

    def __post_init__(self) -> None:
        """Refuse values out of their ranges.

        Raises:
            ValueError: With the range.

        >>> TrainingSettings(epochs=0)
        Traceback (most recent call last):
        ValueError: epochs=0, but expected at least 1
        """
        for name in ("epochs", "batch_size", "evaluate_every", "keep_checkpoints"):
            self._at_least(name, 1)
        for name in ("devices", "steps_per_call", "snapshot_every"):
            if getattr(self, name) is not None:
                self._at_least(name, 1)
        for name in ("learning_rate", "weight_decay", "checkpoint_minutes", "epsilon"):
            self._at_least(name, 0)
        for name in ("momentum", "beta1", "beta2", "label_smoothing"):
            self._share(name)
        if not 0 <= self.warmup <= 1:
            raise ValueError(f"warmup={self.warmup}, but expected 0 to 1, a share of all steps")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed={self.seed}, but expected 0 to 2³² - 1")

        for name, field in self.__dataclass_fields__.items():
            if get_origin(field.type) is Literal and getattr(self, name) not in get_args(
                field.type
            ):
                choice = ", ".join(get_args(field.type))
                raise ValueError(f"{name}={getattr(self, name)!r}, but expected one of {choice}")

    def _at_least(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if not (math.isfinite(value) and value >= least):
            raise ValueError(f"{name}={value}, but expected at least {least}")

    def _share(self, name: str) -> None:
        value = getattr(self, name)
        if not 0 <= value < 1:
            raise ValueError(f"{name}={value}, but expected 0 ≤ {name} < 1")
