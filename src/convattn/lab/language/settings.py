"""All that decides a run of `experiments/language.py`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from convattn.lab.models.settings import LanguageModelSettings
from convattn.lab.training.settings import TrainingSettings

RECIPE = TrainingSettings(
    epochs=6,
    batch_size=32,
    optimizer="adamw",
    learning_rate=3e-3,
    weight_decay=0.01,
)


@dataclass(frozen=True)
class TextSettings:
    """Which text is trained on, and how it is divided."""

    source: str | None = None
    """A file; the reference of the Python language, as this Python has it, if not given."""
    length: int = 128
    """Bytes that are predicted in a window."""
    validation: float = 0.1
    """The share of the text for validation, after the training part."""
    test: float = 0.1
    """The share of the text for testing, at its end."""
    limit: int | None = None
    """Take only the first so many bytes of the text."""

    def __post_init__(self) -> None:
        """Refuse values out of their ranges.

        Raises:
            ValueError: With what was expected.

        >>> TextSettings(length=0)
        Traceback (most recent call last):
        ValueError: length=0, but expected at least 1
        """
        for name in ("length", "limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name}={value}, but expected at least 1")
        if not (0 <= self.validation < 1 and 0 < self.test < 1 - self.validation):
            raise ValueError(
                f"validation={self.validation} and test={self.test}, but expected shares whose sum "
                "is below 1, that of the test above 0"
            )


@dataclass(frozen=True)
class LanguageSettings:
    """All that decides a run."""

    model: Annotated[LanguageModelSettings, tyro.conf.arg(name="")] = field(
        default_factory=LanguageModelSettings
    )
    text: TextSettings = field(default_factory=TextSettings)
    training: TrainingSettings = RECIPE

    def __post_init__(self) -> None:
        """Refuse to choose the best where there is nothing to choose by.

        Raises:
            ValueError: As described above.
        """
        if self.training.select == "best" and not self.text.validation:
            raise ValueError(
                "--training.select best chooses by validation windows, and none are split off; "
                "give --text.validation 0.1, or select last"
            )


@dataclass(frozen=True)
class Arguments:
    """Train a causal language model of bytes: MSAC of several filter widths (Barkan, section 5).

    Without arguments: widths 1, 2 and 3 on the reference of the Python language, in a few minutes
    on two cores. `--scales 1` is ordinary causal self-attention; `--operator convolution` puts
    causal convolutions in its place. Repeating a command with its --output-dir goes on with the
    run.
    """

    settings: Annotated[LanguageSettings, tyro.conf.arg(name="")] = field(
        default_factory=LanguageSettings
    )
    output_dir: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """The folder of the run; default: runs/language-DATE-TIME."""
