"""`train`: from a model and images to a trained model, through interruptions.

A run is a folder. Whatever ends the process, calling `train` again with the same model, images and
settings goes on from the newest whole checkpoint and ends with the same bits: the state holds
everything that the next step depends on, and what was logged after the checkpoint is dropped.
"""

from pathlib import Path

from flax import nnx
from rich.console import Console

from convattn.training.checkpoints import BEST as BEST
from convattn.training.checkpoints import CHECKPOINTS as CHECKPOINTS
from convattn.training.images import TrainingImages
from convattn.training.lock import lock_folder
from convattn.training.outcome import Outcome as Outcome
from convattn.training.settings import TrainingSettings
from convattn.training.sitting import Sitting
from convattn.training.snapshots import Snapshot


def train(
    model: nnx.Module,
    images: TrainingImages,
    settings: TrainingSettings,
    *,
    folder: Path,
    console: Console | None = None,
    snapshot: Snapshot | None = None,
) -> Outcome:
    """Train a model, or go on training it.

    **Arguments:**

    - `model`: called as `model(images, training=…, dropout_key=…)`, giving logits; it is left as
      it is.
    - `folder`: of the run; checkpoints, metrics and snapshots go there.
    - `console`: where progress is shown; nowhere if not given.
    - `snapshot`: a small summary of the model, kept at some epochs.

    **Raises:** `NonFiniteLoss`; `OtherModel` if the folder holds checkpoints of another model, of
    other settings or of other images; `NoWholeCheckpoint` if all that it holds are damaged;
    `FolderInUse` if another process trains there; `ValueError` if the best parameters are damaged,
    for a batch that is larger than the set or that the devices do not divide, and for
    `select="best"` without validation images.
    """
    check_images(images, settings)
    with lock_folder(folder):
        return train_in_held_folder(
            model, images, settings, folder=folder, console=console, snapshot=snapshot
        )


def train_in_held_folder(
    model: nnx.Module,
    images: TrainingImages,
    settings: TrainingSettings,
    *,
    folder: Path,
    console: Console | None = None,
    snapshot: Snapshot | None = None,
) -> Outcome:
    """`train` for a caller who holds the lock of the folder already."""
    check_images(images, settings)
    console = console or Console(quiet=True)
    return Sitting(model, images, settings, folder, console, snapshot).run()


def check_images(images: TrainingImages, settings: TrainingSettings) -> None:
    """Refuse settings that these images do not serve.

    **Raises:** `ValueError`.
    """
    if len(images.train) < settings.batch_size:
        raise ValueError(
            f"--training.batch-size {settings.batch_size}, but there are only {len(images.train)} "
            "training images; take a smaller batch"
        )
    for name, part in images.judged.items():
        if not len(part):
            raise ValueError(f"there are no {name} images, but expected at least one to judge by")
    if settings.select == "best" and images.validation is None:
        raise ValueError(
            "--training.select best chooses by validation images, and none are split off; add "
            "--images.validation 0.1, or select last. Nothing is chosen by the test images"
        )
