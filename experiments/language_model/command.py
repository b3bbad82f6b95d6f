"""`experiments/language.py`: from settings to a trained language model and its bits per byte."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from flax import nnx
from rich.console import Console

from convattn_lab.commands.experiment import run_experiment
from convattn_lab.runs.active_run import begin_run
from convattn_lab.training.trainer import Outcome, train
from language_model.bits_per_byte import (
    RUN,
    SYMBOLS,
    bigram_bits,
    model_bits,
    new_windows,
    summarize,
    unigram_bits,
)
from language_model.model import LanguageModel
from language_model.settings import LanguageSettings
from language_model.text import Windows, read_text, split_text, windows_of
from language_model.training_text import TrainingText

PROGRAM = "experiments/language.py"


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


def main(words: Sequence[str] | None = None) -> int:
    """Run it; the exit codes are those of `run_experiment`."""
    return run_experiment(PROGRAM, Arguments, train_language_model, report, words)


def train_language_model(
    chosen: LanguageSettings, folder: Path, *, command: str, console: Console
) -> Outcome:
    """Train on the windows of a text; the result has the counted baselines, too.

    Raises:
        ValueError: For a text that is too short; and as `begin_run` and `train`.
    """
    options = chosen.text
    text = read_text(options.source)
    content = text.content[: options.limit]
    splits = split_text(content, validation=options.validation, test=options.test)
    learned, validation, test = splits
    examples = TrainingText(
        windows_of(learned, options.length),
        windows_of(test, options.length),
        windows_of(validation, options.length) if validation else None,
    )
    model = LanguageModel(
        chosen.model,
        classes=SYMBOLS,
        length=options.length,
        rngs=nnx.Rngs(chosen.training.seed),
        dtype=chosen.training.compute_dtype,
    )
    sizes = dict(zip(("train", "validation", "test"), map(len, splits), strict=True))
    data = {**text.metadata(), "parts": sizes}
    with begin_run(
        folder, chosen, model, examples, command=command, data=data, console=console
    ) as run:
        outcome = train(chosen.training, examples, model, folder, console=console, locked=True)
        finished = outcome.status == "finished"
        summary = bits_per_byte(outcome.model, examples.test, learned, test) if finished else {}
        run.end(outcome, summary)
    return outcome


def bits_per_byte(model: Any, windows: Windows, train: bytes, test: bytes) -> dict[str, Any]:
    """What the result says: of all test windows, and of those that repeat nothing.

    Args:
        windows: Of the test part.
        train, test: The parts of the text.
    """
    contexts, targets = windows[:, :-1], windows[:, 1:]
    bits = {
        "model": model_bits(model, windows),
        "bigram": bigram_bits(train, contexts, targets),
        "unigram": unigram_bits(train, targets),
    }
    new = new_windows(train, test, windows.shape[1] - 1)
    on_new = {name: values[new] for name, values in bits.items() if new.sum() > 1}
    return {
        "test_windows": len(targets),
        "test_bits_per_byte": {name: summarize(values)._asdict() for name, values in bits.items()},
        "new_windows": int(new.sum()),
        "new_bits_per_byte": {name: summarize(values)._asdict() for name, values in on_new.items()},
    }


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
