"""The compiled network of a seed: trained, compiled twice, and measured before training on."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx
from initialization_comparison.run import GRADIENT_OF, initial_parameters, some_images
from initialization_comparison.trials import Trial

from convattn.compile import CompiledTransformer, to_vision_transformer
from convattn.files import write_file
from convattn_lab.training.images import TrainingImages
from convattn_lab.two_phase.gradient_norms import gradient_norms
from trained_on_comparison.network import PATCH, train_network
from trained_on_comparison.trials import COMPILED, EXACT

COMPARED = 50  # training images from whose values the constants follow; also of the bound
KINDS = {COMPILED: True, EXACT: False}  # whether the constants are those for training


class Stopped(RuntimeError):
    """A signal came while the convolutional network was trained."""


class Starts:
    """With what the runs on some images begin.

    Args:
        folder: The networks go into its folder networks/, as runs and as JSON of what was measured.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "networks"

    def __call__(self, trial: Trial, model: Any, images: TrainingImages) -> dict[str, np.ndarray]:
        """The state dict of a trial, as `run_trial` takes it.

        Raises:
            Stopped: As described above; the same command goes on.
        """
        if trial.initializer not in KINDS:
            return initial_parameters(trial, model, images)
        network = self._network(trial.seed, images)
        compiled = _compiled(network, images, for_training=KINDS[trial.initializer])
        file = self.folder / f"{trial.seed}.json"
        if not file.exists():
            metadata = {"schema": 1, "seed": trial.seed, **measured(network, images)}
            write_file(file, (json.dumps(metadata, separators=(",", ":")) + "\n").encode())
        return compiled.timm

    def _network(self, seed: int, images: TrainingImages) -> Any:
        outcome = train_network(images, seed, self.folder / f"{seed}")
        if outcome.status != "finished":
            raise Stopped
        return outcome.model


def _compiled(network: Any, images: TrainingImages, *, for_training: bool) -> CompiledTransformer:
    pixels, _ = some_images(images, images.train, COMPARED)
    return to_vision_transformer(network, pixels, patch_size=PATCH, for_training=for_training)


def measured(network: Any, images: TrainingImages) -> Mapping[str, Any]:
    """The network, and its vision transformers before training on.

    Returns:
        `accuracy` on the test images, and by kind of constants: their values, `accuracy`,
        `same_class`, the fraction of test images with the same class as the network;
        `difference`, `largest` and `construction` of logits, as the report on training images says;
        the norm of the `gradient` of the loss on 100 training images, and of its groups.
    """
    pixels, labels = some_images(images, images.test, len(images.test))
    own = _classes(network, pixels)
    metrics: dict[str, Any] = {"images": len(images.train), "accuracy": _fraction(own == labels)}
    inputs, targets = some_images(images, images.train, GRADIENT_OF)
    for name, for_training in KINDS.items():
        compiled = _compiled(network, images, for_training=for_training)
        report = compiled.report
        assert report is not None
        model = compiled.to_nnx()
        theirs = _classes(model, pixels)
        groups = {
            group: float(f"{gradient.norm:.4g}")
            for group, gradient in gradient_norms(
                model, jnp.asarray(inputs), jnp.asarray(targets)
            ).items()
        }
        metrics[name] = {
            "constants": asdict(compiled.constants),
            "accuracy": _fraction(theirs == labels),
            "same_class": _fraction(theirs == own),
            "difference": report.difference,
            "largest": report.largest,
            "construction": float(report.bound.construction.max()),
            "within": report.within,
            "gradient": float(np.linalg.norm([*groups.values()])),
            "gradients": groups,
        }
    return metrics


@nnx.jit
def _logits(model: Any, pixels: Any) -> Any:
    return model(pixels)


def _classes(model: Any, pixels: np.ndarray, at_once: int = 100) -> np.ndarray:
    batches = [pixels[start : start + at_once] for start in range(0, len(pixels), at_once)]
    return np.concatenate([np.asarray(_logits(model, batch)).argmax(-1) for batch in batches])


def _fraction(right: np.ndarray) -> float:
    return round(float(right.mean()), 4)
