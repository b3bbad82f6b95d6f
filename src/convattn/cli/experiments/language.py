"""`experiments/language.py`: from settings to a trained language model and its bits per byte."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from flax import nnx
from pydantic import Field

from convattn.cli.experiments.experiment import ExperimentCommand
from convattn.lab.data.text import read_text, split_text, windows_of
from convattn.lab.language import (
    RUN,
    SYMBOLS,
    bigram_bits,
    model_bits,
    new_windows,
    summarize,
    unigram_bits,
)
from convattn.lab.models.language_model import LanguageModel
from convattn.lab.models.settings import LanguageModelSettings
from convattn.lab.runs.launch import Experiment
from convattn.lab.settings import Count, Rate, settings
from convattn.lab.training.session import Outcome
from convattn.lab.training.settings import TrainingSettings
from convattn.lab.training.text import TrainingText

PROGRAM = "experiments/language.py"
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
    """The fraction of the text for validation, after the training part."""
    test: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """The fraction of the text for testing, at its end."""
    limit: Count | None = None
    """Take only the first so many bytes of the text."""


@settings
class LanguageSettings:
    """All that decides a run."""

    model: Annotated[LanguageModelSettings, tyro.conf.arg(name="")] = field(
        default_factory=LanguageModelSettings
    )
    text: TextSettings = field(default_factory=TextSettings)
    training: TrainingSettings = RECIPE


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


def make_experiment(chosen: LanguageSettings) -> Experiment:
    """The text, divided into windows, the model as the seed draws it, and the counted baselines.

    Raises:
        ValueError: For a text that is too short.
    """
    given = chosen.text
    text = read_text(given.source)
    content = text.content[: given.limit]
    train, validation, test = split_text(content, validation=given.validation, test=given.test)
    examples = TrainingText(
        windows_of(train, given.length),
        windows_of(test, given.length),
        windows_of(validation, given.length) if validation else None,
    )
    model = LanguageModel(
        chosen.model,
        classes=SYMBOLS,
        length=given.length,
        rngs=nnx.Rngs(chosen.training.seed),
        dtype=chosen.training.compute_dtype,
    )
    parts = {"train": len(train), "validation": len(validation), "test": len(test)}

    def summary(outcome: Outcome) -> dict[str, Any]:
        if outcome.status != "finished":
            return {}
        contexts, targets = examples.test[:, :-1], examples.test[:, 1:]
        found = {
            "model": model_bits(outcome.model, examples.test),
            "bigram": bigram_bits(train, contexts, targets),
            "unigram": unigram_bits(train, targets),
        }
        new = new_windows(train, test, given.length)
        on_new = {name: each[new] for name, each in found.items() if new.sum() > 1}
        return {
            "test_windows": len(targets),
            "test_bits_per_byte": {name: summarize(each)._asdict() for name, each in found.items()},
            "new_windows": int(new.sum()),
            "new_bits_per_byte": {name: summarize(each)._asdict() for name, each in on_new.items()},
        }

    data = {**text.facts(), "parts": parts}
    return Experiment(chosen, chosen.training, model, examples, data, summary)


def report(result: dict[str, Any]) -> Sequence[str]:
    """What is printed at the end."""
    lines = [
        f"{name}: {bits['mean']:.3f} bits per byte of the test part (standard error "
        f"{bits['error']:.3f} over {result['test_windows']} windows)"
        for name, bits in result["test_bits_per_byte"].items()
    ]
    new = result["new_windows"]
    return [
        *lines,
        f"{new} windows repeat no {RUN} bytes of the training part"
        + "".join(
            f"; {name}: {bits['mean']:.3f} (standard error {bits['error']:.3f})"
            for name, bits in result["new_bits_per_byte"].items()
        ),
    ]


COMMAND = ExperimentCommand(PROGRAM, Arguments, make_experiment, report)
