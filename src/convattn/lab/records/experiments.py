"""The experiments that rows of the ledger stand for, as settings: C20's recipe and L21's.

What appendix B of L21 leaves open is DeiT's: weight decay 0.05, label smoothing 0.1, stochastic
depth 0.1, RandAugment 9, Mixup 0.8, CutMix 1, random erasing 0.25. The peak rates are chosen from
printed sets, so any of a set is the paper's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from convattn.lab.models.presets import cmhsa
from convattn.lab.models.settings import EncoderSettings, Encoding
from convattn.lab.runs.settings import ImageSettings, RunSettings
from convattn.lab.settings import to_json
from convattn.lab.training.settings import TrainingSettings
from convattn.lab.two_phase.settings import (
    ComparisonSettings,
    ConversionSettings,
    TwoPhaseSettings,
)

OF_NO_CONSEQUENCE = (
    *("seed", "devices", "steps_per_call", "evaluate_every", "snapshot_every"),
    *("checkpoint_minutes", "keep_checkpoints", "compute_dtype"),
)
# What does not change the experiment; of L21 also what is not said, or chosen from a printed set.
FREE: dict[str, tuple[str, ...]] = {"images": ("source",), "training": OF_NO_CONSEQUENCE}
FREE_OF_TWO_PHASES: dict[str, tuple[str, ...]] = {
    "model": ("ring",),
    "images": ("source",),
    "training": (*OF_NO_CONSEQUENCE, "learning_rate"),
}
EPOCHS, WARM_EPOCHS = 200, 5
RATES_ONE, RATES_TWO = (1e-4, 3e-4, 5e-4), (1e-5, 3e-5, 5e-5, 7e-5)
WITH, WITHOUT = "limit-40-with", "limit-40-without"
FIRST, CONVOLUTION, ATTENTION = "phase1", "only-convolution", "only-attention"
RUNS = (FIRST, WITH, WITHOUT, CONVOLUTION, ATTENTION)
PRINTED = {  # of CMHSA-5 on CIFAR-100: Table 1 and §4.3
    WITH: 0.7874,
    WITHOUT: 0.7890,
    CONVOLUTION: 0.7612,
    ATTENTION: 0.6983,
}


@dataclass(frozen=True)
class Pipeline:
    """The experiment of L21: the runs of `paper_runs`, whose accuracies are `PRINTED`.

    Attributes:
        claim: The row's id.
        command: What makes runs that can be submitted for the row.
        recorded_by: What puts them on record.
    """

    claim: str = "L21.twophase"
    command: str = (
        "python experiments/two_phase.py compare --config cmhsa5 --starts limit-40 --seeds 0 "
        "--download cifar100-binary"
    )
    recorded_by: str = "python experiments/two_phase.py record FOLDER/seed-0"


@dataclass(frozen=True)
class Row:
    """An experiment of C20.

    Attributes:
        claim: The row's id.
        printed: The accuracy, or None if none is printed.
        settings: The paper's.
        command: What makes a run that can be submitted for the row.
        source: The settings of the run whose heads were pruned for it, for a row about that; the
            heads of `settings` are then those that the paper was left with, and its epochs the
            most.
    """

    claim: str
    printed: float | None
    settings: RunSettings
    command: str
    source: RunSettings | None = None

    @property
    def recorded_by(self) -> str:
        """What puts a run on record."""
        return f"python experiments/record.py RUN {self.claim}"


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


def deit_images() -> ImageSettings:
    """Images enlarged to 224 × 224, with DeiT's augmentation."""
    return ImageSettings(
        crop=4, flip=True, resize=224, rand_augment=9.0, mixup=0.8, cutmix=1.0, erasing=0.25
    )


def deit_training(rate: float, epochs: int = EPOCHS) -> TrainingSettings:
    """AdamW with batch 128, five epochs of warm-up, and a cosine.

    >>> deit_training(3e-4, 400).warmup
    0.0125
    """
    return TrainingSettings(
        epochs=epochs,
        batch_size=128,
        optimizer="adamw",
        learning_rate=rate,
        warmup=WARM_EPOCHS / epochs,
        weight_decay=0.05,
        label_smoothing=0.1,
        compute_dtype="bfloat16",
    )


def paper_pipeline(kernel_size: int = 5) -> TwoPhaseSettings:
    """CMHSA-3 or CMHSA-5.

    >>> paper_pipeline().phase_two.model.heads
    9
    """
    return TwoPhaseSettings(
        model=cmhsa(kernel_size, "convolution"),
        images=deit_images(),
        training_one=deit_training(3e-4),
        training_two=deit_training(3e-5),
        conversion=ConversionSettings("limit", logit=40.0),
        check_images=1,
    )


def paper_runs(kernel_size: int = 5) -> dict[str, RunSettings]:
    """The runs of the comparison by their folders' names.

    >>> paper_runs(3)[CONVOLUTION].training.epochs
    400
    """
    given = ComparisonSettings(paper_pipeline(kernel_size))
    found = {FIRST: given.phase_one(0)}
    for name, warmup in ((WITH, "with"), (WITHOUT, "without")):
        found[name] = given.converted(0, "limit-40", warmup).phase_two
    return {**found, **{name: given.control(0, name) for name in (CONVOLUTION, ATTENTION)}}


def differences(
    settings: RunSettings, config: dict[str, Any], free: Mapping[str, Sequence[str]] = FREE
) -> list[str]:
    """Where a run's `config.json` differs from settings, but for what is free."""
    found = []
    for part, wanted in to_json(settings).items():
        given = config.get(part, {})
        for name in sorted((wanted.keys() | given.keys()) - {"kind", *free.get(part, ())}):
            if given.get(name) != wanted.get(name):
                found.append(f"{part}.{name} is {given.get(name)}, not {wanted.get(name)}")
    return found
