"""`experiments/language.py`: from settings to a trained language model and its bits per byte."""

from collections.abc import Sequence
from typing import Any

from flax import nnx

from convattn.cli.experiments.experiment import ExperimentCommand
from convattn.lab.data.text import read_text, split_text, windows_of
from convattn.lab.language.bits import model_bits, summarize
from convattn.lab.language.counting import SYMBOLS, bigram_bits, unigram_bits
from convattn.lab.language.repetition import RUN, new_windows
from convattn.lab.language.settings import Arguments, LanguageSettings
from convattn.lab.models.language_model import LanguageModel
from convattn.lab.runs.experiment import Experiment
from convattn.lab.training.session import Outcome
from convattn.lab.training.text import TrainingText

PROGRAM = "experiments/language.py"


def make_experiment(settings: LanguageSettings) -> Experiment:
    """The text, divided into windows, the model as the seed draws it, and the counted baselines.

    Raises:
        ValueError: For a text that is too short.
    """
    given = settings.text
    text = read_text(given.source)
    content = text.content[: given.limit]
    train, validation, test = split_text(content, validation=given.validation, test=given.test)
    examples = TrainingText(
        windows_of(train, given.length),
        windows_of(test, given.length),
        windows_of(validation, given.length) if validation else None,
    )
    model = LanguageModel(
        settings.model,
        classes=SYMBOLS,
        length=given.length,
        rngs=nnx.Rngs(settings.training.seed),
        dtype=settings.training.compute_dtype,
    )
    parts = {"train": len(train), "validation": len(validation), "test": len(test)}

    def summary(outcome: Outcome) -> dict[str, Any]:
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
    return Experiment(PROGRAM, settings, model, examples, settings.training, data, summary)


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
