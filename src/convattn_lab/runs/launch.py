"""`launch`: from settings to a trained model and the folder of its run."""

from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

from convattn.data.datasets import read_dataset
from convattn_lab.runs.active_run import begin_run, check_directory
from convattn_lab.runs.attention_snapshot import attention_snapshot
from convattn_lab.runs.images import image_metadata, image_size_of, make_model, training_images
from convattn_lab.runs.settings import RunSettings
from convattn_lab.training.hosts import is_first
from convattn_lab.training.trainer import Outcome, train

BUNDLED = ", bundled; --data or --download takes others"


def launch(
    settings: RunSettings,
    folder: Path,
    *,
    command: str,
    console: Console | None = None,
    initial: dict[str, np.ndarray] | None = None,
) -> Outcome:
    """Train the model that the settings name on their images, or go on where it was left.

    Args:
        folder: New, empty, or of a run with the same settings.
        command: What repeats the run, for its record.
        console: Where progress is shown.
        initial: Parameters to begin with, by name; random if not given.

    Raises:
        ValueError: If the folder holds something else, or the images have changed since the run
            began; and what `read_dataset` and `train` raise.
    """
    if is_first():
        check_directory(folder, settings)  # before anything takes long
    dataset = read_dataset(settings.images.source, classes=settings.images.classes)
    images, model = training_images(dataset, settings), make_model(settings, dataset)
    with begin_run(
        folder,
        settings,
        model,
        images,
        command=command,
        data=image_metadata(dataset, images, settings),
        data_name="images",
        title=f"images: {dataset.title}{'' if settings.images.source else BUNDLED}",
        console=console,
        initial=initial,
    ) as run:
        snapshot = partial(attention_snapshot, image_size=image_size_of(dataset, settings))
        outcome = train(
            settings.training,
            images,
            model,
            folder,
            console=console,
            snapshot=snapshot,
            locked=True,
        )
        run.end(outcome, {"test_images": len(dataset.test), "images": dataset.title})
    return outcome
