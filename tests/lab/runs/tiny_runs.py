"""The smallest runs: a dozen pictures on the disk, and a model that trains on them in seconds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn_lab.models.settings import (
    EncoderSettings,
    ResNetSettings,
    SelfAttentiveResNetSettings,
)
from convattn_lab.runs.settings import ImageSettings, RunSettings
from convattn_lab.training.settings import TrainingSettings

CLASSES = ("bird", "cat")
SHORT = TrainingSettings(epochs=1, batch_size=2, optimizer="adamw", learning_rate=1e-3)


def write_pictures(folder: Path, *, train: int = 4, test: int = 2, side: int = 8) -> Path:
    """Image folders with so many pictures of each class and split; noise, and brighter cats."""
    rng = np.random.default_rng(0)
    for split, count in (("train", train // 2), ("test", test // 2)):
        for number, name in enumerate(CLASSES):
            (folder / split / name).mkdir(parents=True)
            for picture in range(count):
                pixels = rng.integers(0, 150, (side, side, 3)) + 100 * number
                image = Image.fromarray(pixels.astype(np.uint8))
                image.save(folder / split / name / f"{picture}.png")
    return folder


def tiny_settings(pictures: Path) -> RunSettings:
    """One layer of two heads, one epoch of two steps."""
    return RunSettings(
        EncoderSettings(heads=(2,), width=4, inner=4),
        ImageSettings(source=str(pictures), crop=1),
        SHORT,
    )


def shrunk(settings: RunSettings, pictures: Path) -> RunSettings:
    """The same kind of run, tiny: the same encoding and recipe; two layers, few heads."""
    model = settings.model
    if isinstance(model, ResNetSettings):
        model = replace(model, channels=(2, 3), blocks=(1, 1))
    elif isinstance(model, SelfAttentiveResNetSettings):
        model = replace(model, channels=(2,), blocks=(1,), heads=1, key_features=2)
    elif isinstance(model, VisionTransformerSettings):
        head_width = None if model.head_width is None else 4
        sizes = {"depth": 1, "width": 48, "inner": 6, "patch_size": 4, "heads": 2}
        model = replace(model, head_width=head_width, **sizes)
        images = replace(settings.images, resize=None, rand_augment=0.0)  # it has tests of its own
        settings = replace(settings, images=images)
    else:
        heads = tuple(min(count, 2 + layer) for layer, count in enumerate(model.heads[:2]))
        model = replace(model, heads=heads, width=4, inner=4)
    training = replace(settings.training, epochs=1, batch_size=2, compute_dtype="float32")
    return replace(
        settings,
        model=model,
        images=replace(settings.images, source=str(pictures)),
        training=training,
    )
