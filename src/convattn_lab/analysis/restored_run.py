"""The model of a run as it stands in its newest checkpoint, and the images that it saw."""

from dataclasses import dataclass
from pathlib import Path

import jax
from flax import nnx

from convattn.data.datasets import Dataset, read_dataset
from convattn_lab.runs.directory import RunDirectory
from convattn_lab.runs.images import digest_of, make_model, training_images
from convattn_lab.runs.settings import RunSettings
from convattn_lab.training.checkpoints import BEST, CHECKPOINTS, CheckpointStore
from convattn_lab.training.images import TrainingImages
from convattn_lab.training.optimizer import make_optimizer
from convattn_lab.training.state import TrainState, initial_state


@dataclass(frozen=True)
class RestoredRun:
    """A run with its model.

    Attributes:
        settings: Of the run.
        model: With the parameters of the checkpoint; those that were chosen, for a run that
            selects.
        step: Of the checkpoint.
        epoch: How many epochs were complete then.
        further_steps: Of the epoch that was not.
        dataset, images: As the run has them.
    """

    settings: RunSettings
    model: nnx.Module
    step: int
    epoch: int
    further_steps: int
    dataset: Dataset
    images: TrainingImages

    @property
    def when(self) -> str:
        """Of what time in training the model is, in words."""
        further = f" and {self.further_steps} steps" if self.further_steps else ""
        return f"epoch {self.epoch}{further}"


def restore_run(path: Path) -> RestoredRun:
    """Read the images, build the model, and fill it from the newest whole checkpoint.

    Raises:
        ValueError: If it is not the folder of a run or has no whole checkpoint, or if the images
            are not those that the run saw.
    """
    directory = RunDirectory(path)
    settings, recorded = directory.read_settings(), directory.read_images()
    dataset = read_dataset(settings.images.source, classes=settings.images.classes)
    if digest_of(dataset) != recorded.get("sha256"):
        raise ValueError(
            f"{path} saw other images of {recorded['name']} than those that are now at "
            f"{settings.images.source or 'the bundled slice'}; put the old ones back, or train a "
            "new run on these"
        )
    images = training_images(dataset, settings)
    steps_per_epoch = len(images.train) // settings.training.batch_size
    optimizer = make_optimizer(settings.training, settings.training.epochs * steps_per_epoch)

    def initial() -> TrainState:
        return initial_state(make_model(settings, dataset), optimizer, settings.training.seed)[1]

    structure = nnx.split(nnx.eval_shape(lambda: make_model(settings, dataset)))[0]
    like = jax.eval_shape(initial)  # shapes alone: the numbers would be overwritten
    folder = path / (BEST if settings.training.select == "best" else CHECKPOINTS)
    restored = CheckpointStore(folder).restore_newest(like, set_aside=False)
    if restored is None:
        raise ValueError(
            f"{folder} holds no whole checkpoint, so the model cannot be restored; wait for the "
            "first, or go on training the run"
        )
    model = nnx.merge(structure, restored.state.parameters, restored.state.statistics)
    return RestoredRun(
        settings, model, restored.step, *divmod(restored.step, steps_per_epoch), dataset, images
    )
