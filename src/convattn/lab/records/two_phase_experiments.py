"""L21's experiment as settings: the recipe of §4.1 and appendix B, and the four runs compared.

What appendix B leaves open is DeiT's: weight decay 0.05, label smoothing 0.1, stochastic depth 0.1,
RandAugment 9, Mixup 0.8, CutMix 1, random erasing 0.25. The peak rates are chosen from printed
sets, so any of a set is the paper's.
"""

import dataclasses
from typing import Any

from convattn.lab.models.presets import cmhsa
from convattn.lab.runs.settings import ImageSettings, RunSettings
from convattn.lab.training.settings import TrainingSettings
from convattn.lab.two_phase.settings import ComparisonSettings, ConversionSettings, TwoPhaseSettings

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
FREE = {  # not said in L21, of no consequence, or chosen from a printed set
    "model": ("ring",),
    "images": ("source",),
    "training": (
        *("seed", "devices", "steps_per_call", "evaluate_every", "snapshot_every"),
        *("checkpoint_minutes", "keep_checkpoints", "compute_dtype", "learning_rate"),
    ),
}


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


def differences(settings: RunSettings, config: dict[str, Any]) -> list[str]:
    """Where a run's `config.json` differs from settings, but for what is free."""
    found = []
    for part in ("model", "images", "training"):
        wanted = dataclasses.asdict(getattr(settings, part))
        for name in sorted((wanted.keys() | config[part].keys()) - {"kind", *FREE.get(part, ())}):
            if config[part].get(name) != wanted.get(name):
                found.append(f"{part}.{name} is {config[part].get(name)}, not {wanted.get(name)}")
    return found
