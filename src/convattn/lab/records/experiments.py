"""Rows of the ledger for experiments: C20's recipe, and where a run differs from it."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from convattn.lab.models.settings import EncoderSettings, Encoding
from convattn.lab.runs.settings import ImageSettings, RunSettings
from convattn.lab.training.settings import TrainingSettings

FREE = {  # what does not change the experiment
    "images": ("source",),
    "training": (
        "seed",
        "devices",
        "steps_per_call",
        "evaluate_every",
        "snapshot_every",
        "checkpoint_minutes",
        "keep_checkpoints",
        "compute_dtype",
    ),
}


@dataclass(frozen=True)
class Row:
    """An experiment of C20.

    Attributes:
        claim: The row's id.
        printed: The accuracy, or None if none is printed.
        settings: The paper's.
        command: What makes a run that backs the row.
        source: The settings of the run whose heads were pruned for it, for a row about that; the
            heads of `settings` are then those that the paper was left with, and its epochs the
            most.
    """

    claim: str
    printed: float | None
    settings: RunSettings
    command: str
    source: RunSettings | None = None


def paper_settings(
    encoding: Encoding, heads: Sequence[int] = (9,) * 6, *, epochs: int = 300, rate: float = 0.1
) -> RunSettings:
    """C20, Table 2, number by number, with the initial variances of §4.2 and appendix E.

    >>> paper_settings("learned").model.depth
    6
    """
    return RunSettings(
        EncoderSettings(
            encoding,
            heads=tuple(heads),
            width=400,
            inner=512,
            downsampling=2,
            dropout=0.1,
            attention_dropout=0.0,
            norm_epsilon=1e-12,
            center_variance=2.0,
            spread_variance=0.01,
        ),
        ImageSettings(crop=4, flip=True, validation=0.0),
        TrainingSettings(
            epochs=epochs,
            batch_size=100,
            optimizer="sgd",
            learning_rate=rate,
            warmup=0.05,
            schedule="cosine",
            momentum=0.9,
            weight_decay=1e-4,
            label_smoothing=0.0,
            select="last",
        ),
    )


def differences(settings: RunSettings, config: dict[str, Any]) -> list[str]:
    """Where a run's `config.json` differs from settings, but for what is free."""
    found = []
    for part in ("model", "images", "training"):
        wanted = dataclasses.asdict(getattr(settings, part))
        given = {k: tuple(v) if isinstance(v, list) else v for k, v in config[part].items()}
        for name in sorted((wanted.keys() | given.keys()) - {"kind", *FREE.get(part, ())}):
            if given.get(name) != wanted.get(name):
                found.append(f"{part}.{name} is {given.get(name)}, not {wanted.get(name)}")
    return found
