"""The smallest pipeline: 8 × 8 pixels, four patches, one layer, an epoch of two steps each."""

from dataclasses import replace
from pathlib import Path

from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn_lab.runs.settings import ImageSettings
from convattn_lab.training.settings import TrainingSettings
from convattn_lab.two_phase.settings import ConversionSettings, TwoPhaseSettings

ONE = TrainingSettings(epochs=1, batch_size=4, optimizer="adamw", learning_rate=1e-2, warmup=0.5)


def tiny_pipeline(pictures: Path) -> TwoPhaseSettings:
    return TwoPhaseSettings(
        VisionTransformerSettings("convolution", depth=1, width=48, inner=6, patch_size=4),
        ImageSettings(source=str(pictures), crop=1),
        ONE,
        replace(ONE, learning_rate=1e-3),
        ConversionSettings("exact"),
        check_images=2,
    )
