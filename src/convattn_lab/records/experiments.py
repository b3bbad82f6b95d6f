"""The recipes of C20 and L21, as settings.

What appendix B of L21 leaves open is DeiT's: weight decay 0.05, label smoothing 0.1, stochastic
depth 0.1, RandAugment 9, Mixup 0.8, CutMix 1, random erasing 0.25. The peak rates are chosen from
printed sets, so any of a set is the paper's.
"""

from collections.abc import Sequence
from typing import Any

from convattn_lab.models.presets import cmhsa
from convattn_lab.models.settings import EncoderSettings, Encoding
from convattn_lab.runs.settings import ImageSettings, RunSettings
from convattn_lab.settings import flattened, to_json
from convattn_lab.training.settings import TrainingSettings
from convattn_lab.two_phase.settings import (
    ComparisonSettings,
    ConversionSettings,
    TwoPhaseSettings,
)

# What does not change the experiment; of L21 also what is not said, or chosen from a printed set.
FREE = (
    "images.source",
    *(f"training.{name}" for name in ("seed", "devices", "steps_per_call", "evaluate_every")),
    *(f"training.{name}" for name in ("snapshot_every", "checkpoint_minutes", "keep_checkpoints")),
    "training.compute_dtype",
)
FREE_OF_TWO_PHASES = (*FREE, "model.ring", "training.learning_rate")
# A head goes if the largest eigenvalue of Σ⁻¹ is below, or its condition number above.
THRESHOLDS = {"largest": 1e-5, "condition": 1e5}
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
    comparison = ComparisonSettings(paper_pipeline(kernel_size))
    runs = {FIRST: comparison.phase_one(0)}
    for name, warmup in ((WITH, "with"), (WITHOUT, "without")):
        runs[name] = comparison.converted(0, "limit-40", warmup).phase_two
    return {**runs, **{name: comparison.control(0, name) for name in (CONVOLUTION, ATTENTION)}}


def differences(
    settings: RunSettings, config: dict[str, Any], free: Sequence[str] = FREE
) -> list[str]:
    """Where a run's `config.json` differs from settings, but for what is free."""
    expected = flattened(to_json(settings))
    groups = {name: value for name, value in config.items() if isinstance(value, dict)}
    recorded = {
        f"{group}.{name}": value for group in groups for name, value in groups[group].items()
    }
    return [
        f"{name} is {recorded.get(name)}, not {expected.get(name)}"
        for name in sorted({*expected, *recorded} - {*free})
        if recorded.get(name) != expected.get(name)
    ]
