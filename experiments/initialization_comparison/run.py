"""One run of the comparison: train, measure the network on the way, keep what is reported."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Float, Int
from rich.console import Console

from convattn.data.cifar10_slice import Images
from convattn.data.datasets import Dataset
from convattn.diagnosis.convolution_distance import convolution_distance
from convattn.diagnosis.measures import measure_heads
from convattn.diagnosis.transformers import attention_layers
from convattn.files import DirectoryLockedError
from convattn.networks.vision_transformer.state_dicts import read_transformer
from convattn.networks.weights.files import WeightsFile
from convattn.nnx.vision_transformer.state_dict import load_state_dict, state_dict
from convattn_lab.runs.active_run import begin_run
from convattn_lab.runs.directory import CONFIG
from convattn_lab.runs.images import image_metadata, make_model, training_images
from convattn_lab.settings import to_json
from convattn_lab.training.failures import NonFiniteLoss
from convattn_lab.training.images import TrainingImages
from convattn_lab.training.metrics import read_metrics
from convattn_lab.training.snapshots import read_snapshot, snapshot_epochs
from convattn_lab.training.state import named_arrays
from convattn_lab.training.step import cross_entropy
from convattn_lab.training.trainer import Outcome, train
from convattn_lab.two_phase.gradient_norms import gradient_norms
from initialization_comparison.results import Epoch, Result, Snapshot, numbers, write_result
from initialization_comparison.trials import INITIALIZERS, Trial

PROGRAM = "experiments/initialization.py"
ATTENTION_OF, GRADIENT_OF, VALIDATED = 32, 100, 500  # images of a snapshot
KERNEL_SIZE = 3

Initialize = Callable[[Trial, Any, TrainingImages], dict[str, np.ndarray]]
Batch = tuple[Float[np.ndarray, "images height width channels"], Int[np.ndarray, " images"]]


def initial_parameters(trial: Trial, model: Any, images: TrainingImages) -> dict[str, np.ndarray]:
    """The state dict with which a run begins.

    The range of normalised pixels is that of bytes, with the statistics of the training images.
    """
    image_range = (0 - images.mean) / images.std, (1 - images.mean) / images.std
    initializer = INITIALIZERS[trial.initializer]
    return initializer(state_dict(model), trial.seed, image_range, trial.task.network.heads)


def run_trial(
    trial: Trial,
    dataset: Dataset,
    folder: Path,
    file: Path,
    initialize: Initialize = initial_parameters,
    program: str = PROGRAM,
) -> Result | None:
    """Train in a folder, or go on there, and write what is reported of a run that has ended.

    Args:
        initialize: The state dict with which a run begins.
        program: By which the run is named in its record.

    Returns:
        The result, also of a run that diverged; None if it was stopped by a signal.

    Raises:
        ValueError: As `begin_run` and `train`.
    """
    chosen = trial.settings(len(dataset.train))
    images = trial_images(trial, dataset)
    model: Any = make_model(chosen, dataset)
    initial = None
    if not (folder / CONFIG).exists():  # else they are those with which the run began
        load_state_dict(model, initialize(trial, model, images))
        initial = named_arrays(nnx.state(model, nnx.Param))
    assert images.validation is not None
    metadata = image_metadata(dataset, images, chosen)
    snapshot = partial(
        compute_metrics,
        heads=trial.task.network.heads,
        training=some_images(images, images.train, GRADIENT_OF),
        validation=some_images(images, images.validation, VALIDATED),
    )
    outcome: Outcome | None = None
    with (
        suppress(NonFiniteLoss),
        begin_run(
            folder,
            chosen,
            model,
            images,
            command=f"python {program}  # {trial.name}",
            data=metadata,
            data_name="images",
            initial=initial,
        ) as run,
    ):
        outcome = train(chosen.training, images, model, folder, snapshot=snapshot, locked=True)
        run.end(outcome, {"initializer": trial.initializer})
    if outcome is not None and outcome.status != "finished":
        return None
    lines = read_metrics(folder)
    tested = None if trial.tunes else outcome
    validated = None if outcome is None else lines[-1]["validation_loss"]
    result = Result(
        schema=2,
        initializer=trial.initializer,
        images=len(images.train),
        learning_rate=trial.learning_rate,
        seed=trial.seed,
        dataset=dataset.title,
        sha256=metadata["sha256"],
        classes=metadata["classes"],
        settings=to_json(chosen),
        diverged=outcome is None,
        validation_loss=validated,
        test_loss=None if tested is None else tested.test_loss,
        test_accuracy=None if tested is None else tested.test_accuracy,
        seconds=None if outcome is None else round(outcome.seconds, 1),
        curve=tuple(Epoch(**{n: line[n] for n in Epoch.__dataclass_fields__}) for line in lines),
        snapshots=tuple(
            Snapshot(epoch=epoch, **numbers(read_snapshot(folder, epoch)))
            for epoch in snapshot_epochs(folder)
        ),
    )
    write_result(file, result)
    return result


def finish_trials(
    trials: Sequence[Trial],
    dataset: Dataset,
    folder: Path,
    out: Console,
    initialize: Initialize = initial_parameters,
    program: str = PROGRAM,
) -> int | None:
    """Run what is missing, and say how it went.

    Args:
        initialize, program: As for `run_trial`.

    Returns:
        How many of them another process still runs; None if a signal came.
    """
    left = 0
    for trial in trials:
        file = folder / f"{trial.name}.json"
        if file.exists():
            continue
        where = folder / "runs" / trial.name
        try:
            result = run_trial(trial, dataset, where, file, initialize, program)
        except DirectoryLockedError:
            out.print(f"{trial.name}: another process runs it")
            left += 1
            continue
        if result is None:
            out.print(f"stopped; the same command goes on with {trial.name}")
            return None
        if result.diverged:
            out.print(f"{trial.name}: diverged")
        elif trial.tunes:
            out.print(f"{trial.name}: loss {result.validation_loss:.4f} on validation images")
        else:
            out.print(f"{trial.name}: {100 * (result.test_accuracy or 0):.1f} % of the test images")
    return left


def trial_images(trial: Trial, dataset: Dataset) -> TrainingImages:
    """The images of a run; of one that tunes the validation images stand for the test images."""
    images = training_images(dataset, trial.settings(len(dataset.train)))
    assert images.validation is not None
    return replace(images, test=images.validation) if trial.tunes else images


def some_images(images: TrainingImages, split: Images, count: int) -> Batch:
    """So many images of a part at equal steps, or all, normalised, and their labels."""
    count = min(count, len(split))
    chosen = np.arange(count) * len(split) // count
    pixels = (split.images[chosen] / 255 - images.mean) / images.std
    return pixels.astype(np.float32), split.labels[chosen].astype(np.int32)


def compute_metrics(
    model: Any, training: Batch, validation: Batch, *, heads: int
) -> dict[str, np.ndarray]:
    """What is kept of the network at some epochs.

    Args:
        training: Images of which the gradient is taken, and on the first of which attention is
            measured; nothing is augmented.
        validation: Images of which the loss and the accuracy are.
        heads: Of each layer.

    Returns:
        `distance` `[layers]`, relative, to the nearest convolution, of the attention at the mean
        of the images and of the queries whose whole neighbourhood lies in the grid;
        `attention_distance` and `one_shift` `[layers, heads]`, as `measure_heads`;
        `score_gradient`, the norm of the gradient in W_Q and W_K of all layers;
        `validation_loss` and `validation_accuracy`.
    """
    read = read_transformer(WeightsFile("model", state_dict(model), {}), heads)
    distances, reach, shift = [], [], []
    for layer in attention_layers(read, training[0][:ATTENTION_OF].astype(np.float64)):
        height, width = layer.grid
        at_mean = layer.at_mean[:, -height * width :, -height * width :]
        assert layer.maps is not None
        flat = layer.maps.reshape(len(layer.maps), -1)
        distance = convolution_distance(
            at_mean.reshape(len(flat), height, width, height, width),
            flat @ flat.T,
            KERNEL_SIZE,
            queries="inside",
        )
        measures = measure_heads(layer.attention, layer.grid)
        distances.append(distance.relative)
        reach.append(measures.distance)
        shift.append(measures.one_shift)
    gradient = gradient_norms(model, jnp.asarray(training[0]), jnp.asarray(training[1]))
    loss, accuracy = loss_and_accuracy(
        model, jnp.asarray(validation[0]), jnp.asarray(validation[1])
    )
    named = {
        "distance": distances,
        "attention_distance": reach,
        "one_shift": shift,
        "score_gradient": np.hypot(gradient["W_Q"].norm, gradient["W_K"].norm),
        "validation_loss": loss,
        "validation_accuracy": accuracy,
    }
    return {name: np.asarray(values, np.float32) for name, values in named.items()}


@nnx.jit
def loss_and_accuracy(
    model: Any,
    images: Float[Array, "images height width channels"],
    labels: Int[Array, " images"],
) -> tuple[Array, Array]:
    """The mean loss, and the fraction of images that are classified correctly."""
    logits = model(images)
    right = jnp.argmax(logits, axis=-1) == labels
    return jnp.mean(cross_entropy(logits, labels, 0.0)), jnp.mean(right)
