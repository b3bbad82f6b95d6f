"""All that decides a run of `experiments/language.py`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from pydantic import Field

from convattn.lab.models.settings import LanguageModelSettings
from convattn.lab.settings import Count, Rate, settings
from convattn.lab.training.settings import TrainingSettings

RECIPE = TrainingSettings(
    epochs=6,
    batch_size=32,
    optimizer="adamw",
    learning_rate=3e-3,
    weight_decay=0.01,
)


@settings
class TextSettings:
    """Which text is trained on, and how it is divided."""

    source: str | None = None
    """A file; the reference of the Python language, as this Python has it, if not given."""
    length: Count = 128
    """Bytes that are predicted in a window."""
    validation: Rate = 0.1
    """The share of the text for validation, after the training part."""
    test: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """The share of the text for testing, at its end."""
    limit: Count | None = None
    """Take only the first so many bytes of the text."""

    def __post_init__(self) -> None:
        if not self.test < 1 - self.validation:
            raise ValueError(
                f"validation={self.validation} and test={self.test}, but expected shares whose sum "
                "is below 1"
            )


@settings
class LanguageSettings:
    """All that decides a run."""

    model: Annotated[LanguageModelSettings, tyro.conf.arg(name="")] = field(
        default_factory=LanguageModelSettings
    )
    text: TextSettings = field(default_factory=TextSettings)
    training: TrainingSettings = RECIPE

    def __post_init__(self) -> None:
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
