"""From a finished run of convolutions to the beginning of a run of attention."""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from flax import nnx

from convattn.data.datasets import Dataset
from convattn.files import lock_directory
from convattn.nnx.vision_transformer.model import VisionTransformer
from convattn_lab.analysis.restored_run import restore_run
from convattn_lab.runs.active_run import check_directory
from convattn_lab.runs.directory import CONFIG, CONVERSION, RunDirectory
from convattn_lab.runs.images import make_model
from convattn_lab.settings import to_json
from convattn_lab.training.images import TrainingImages
from convattn_lab.training.state import named_arrays
from convattn_lab.two_phase.conversion_check import check_conversion, in_float32
from convattn_lab.two_phase.settings import ConversionSettings, TwoPhaseSettings
from convattn_lab.two_phase.transfer import transfer


@dataclass(frozen=True)
class PhaseOne:
    """A finished run of convolutions.

    Attributes:
        model: Computing in float32.
        source: What `conversion.json` says of it.
    """

    model: VisionTransformer
    dataset: Dataset
    images: TrainingImages
    source: dict[str, Any]


def read_phase_one(path: Path) -> PhaseOne:
    """Read a run of convolutions.

    Raises:
        ValueError: If it is not finished, or not of convolutions; and as `restore_run`.
    """
    directory = RunDirectory(path)
    result = directory.read_result()
    if result is None or result["status"] != "finished":
        raise ValueError(
            f"{path} is a run that is not finished, but only a finished one is converted; go on "
            f"with it first: python experiments/cifar.py --resume {path}"
        )
    run = restore_run(path)
    trained = run.model
    if not isinstance(trained, VisionTransformer) or trained.settings.mixing != "convolution":
        raise ValueError(
            f"{path} trained a {type(trained).__name__}, but expected one whose tokens are mixed "
            "by convolutions: model.mixing=convolution"
        )
    training = in_float32(run.settings.training)
    model: Any = make_model(replace(run.settings, training=training), run.dataset)
    nnx.update(model, nnx.state(trained, nnx.Param))
    source = {
        "config": json.loads(json.dumps(to_json(run.settings))),
        "result": result,
        "images_sha256": directory.read_metadata()["images"]["sha256"],
        "epochs": run.epoch,
    }
    return PhaseOne(model, run.dataset, run.images, source)


def begin_phase_two(
    one: PhaseOne, folder: Path, settings: TwoPhaseSettings
) -> dict[str, np.ndarray] | None:
    """Convert, check, and put on record what was seen, unless that was done before.

    Args:
        folder: Of the run of attention.

    Returns:
        The parameters that it begins with; None if it has begun, and has them.

    Raises:
        ConversionFailed: If the check fails, and then nothing is written; `ValueError` for a folder
            that holds something else, or a run that was converted from another one.
    """
    directory, settings_two = RunDirectory(folder), settings.phase_two
    check_directory(directory.path, settings_two)
    if (folder / CONFIG).exists():
        _check_source(directory, one, settings.conversion)
        return None
    began, how = time.monotonic(), settings.conversion
    rngs = nnx.Rngs(settings_two.training.seed)  # by which W_K is drawn
    model = transfer(one.model, settings_two.model, how, rngs=rngs)  # type: ignore[arg-type]
    seconds = time.monotonic() - began
    report = check_conversion(
        one.model,
        model,
        one.images,
        how,
        settings.training_two,
        count=settings.check_images,
        seconds=seconds,
    )
    with lock_directory(folder):
        directory.write(CONVERSION, {"source": one.source, **report.to_json()})
    return named_arrays(nnx.state(model, nnx.Param))


def _check_source(directory: RunDirectory, one: PhaseOne, conversion: ConversionSettings) -> None:
    """Refuse to go on with a run that was converted from another one, or otherwise."""
    stored = directory.read_conversion()
    if stored is None:
        raise ValueError(
            f"{directory.path} holds a run that was not converted from another; take another folder"
        )
    same = stored["source"] == json.loads(json.dumps(one.source))
    how = ConversionSettings(
        **{name: stored["conversion"][name] for name in ConversionSettings.__dataclass_fields__}
    )
    if not same or how != conversion:
        what = "from another run" if not same else "otherwise"
        raise ValueError(
            f"{directory.path} holds a run that was converted {what}; take another folder"
        )
