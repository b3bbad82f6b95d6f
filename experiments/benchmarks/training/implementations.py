"""Who takes a step of training, and how each is made ready: ours, two that keep more, PyTorch."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from benchmarks.torch_layer import torch_is_there
from benchmarks.training.plain_encoder import FORMS, with_stored_outputs
from benchmarks.training.settings import Settings
from benchmarks.training.torch_model import MIXINGS, torch_model, torch_step
from convattn.data.cifar10_slice import Images
from convattn_lab.data.batches import DeviceImages
from convattn_lab.models.encoder import Encoder
from convattn_lab.training.devices import data_mesh, spread
from convattn_lab.training.images import TrainingImages
from convattn_lab.training.optimizer import make_optimizer
from convattn_lab.training.program import compiler_options
from convattn_lab.training.settings import TrainingSettings
from convattn_lab.training.state import initial_state
from convattn_lab.training.step import Recipe, make_step

OURS, TORCH, CLASSES = "ours", "torch", 10
MEAN, STD = np.full(3, 0.5), np.full(3, 0.25)


class StepMemory(NamedTuple):
    """Bytes of a compiled step by XLA's analysis; `aliased` are outputs in place of arguments."""

    arguments: int
    outputs: int
    temporary: int
    aliased: int

    @property
    def peak(self) -> int:
        """What it holds at once."""
        return self.arguments + self.outputs + self.temporary - self.aliased


class Step(NamedTuple):
    """A step of training, ready to run and to be repeated; memory where somebody can tell."""

    run: Callable[[], None]
    memory: StepMemory | None


def names(settings: Settings) -> list[str]:
    """Everybody who can compete here: our step, those that keep head outputs, PyTorch."""
    torch = torch_is_there() and jax.default_backend() == "cpu"
    return [OURS, *FORMS, *(f"{TORCH} {mixing}" for mixing in MIXINGS if torch)]


def make_step_of(name: str, batch: int, settings: Settings) -> Step:
    """An implementation on random images, with the weights that all start from.

    Raises:
        ValueError: For an unknown name.
    """
    model = paper_model(settings)
    pixels, labels = random_batch(batch, settings.image_side)
    training = TrainingSettings(batch_size=batch)
    if name == OURS:
        return jax_step(model, training, pixels, labels)
    if name in FORMS:
        return jax_step(with_stored_outputs(model, name), training, pixels, labels)
    kind, _, mixing = name.partition(" ")
    if kind != TORCH or mixing not in MIXINGS:
        raise ValueError(f"{name!r} does not compete; expected one of {names(settings)}")
    images = ((pixels / 255 - MEAN) / STD).astype(np.float32)
    return Step(torch_step(torch_model(model, mixing), training, images, labels), None)


def paper_model(settings: Settings) -> Encoder:
    """The model, with the same first weights each time."""
    size = (settings.image_side, settings.image_side)
    return Encoder(settings.model, classes=CLASSES, image_size=size, rngs=nnx.Rngs(0))


def random_batch(batch: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Bytes and class numbers."""
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (batch, side, side, 3), dtype=np.uint8)
    return pixels, random.integers(0, CLASSES, batch, dtype=np.int32)


def jax_step(
    model: Encoder, training: TrainingSettings, pixels: np.ndarray, labels: np.ndarray
) -> Step:
    """The trainer's own step, compiled, its state used up and replaced by each call."""
    optimizer = make_optimizer(training, steps=10**6)
    structure, state = initial_state(model, optimizer, training.seed)
    batch = len(labels)
    images = Images(pixels, labels.astype(np.uint8), tuple("0123456789"))
    examples = TrainingImages(images, images, MEAN, STD)
    sharding = spread(data_mesh(batch, devices=1))
    recipe = Recipe(structure, optimizer, training, examples, sharding)
    data = DeviceImages(jnp.asarray(pixels), jnp.asarray(labels))
    order = jnp.arange(batch, dtype=jnp.int32)
    states: list[Any] = [jax.tree.map(jnp.array, state)]
    lowered = jax.jit(make_step(recipe, 1), donate_argnums=0).lower(states[0], data, order)
    compiled = lowered.compile(compiler_options(jax.default_backend()))

    def run() -> None:
        states[0], loss = compiled(states[0], data, order)
        finish(loss)

    return Step(run, memory_of(compiled))


def finish(loss: Array) -> None:
    """Wait; a benchmark of numbers that are none would mean nothing.

    Raises:
        FloatingPointError: For a loss that is not finite.
    """
    if not np.isfinite(float(loss)):
        raise FloatingPointError(f"the loss is {float(loss)}; the step computes no training")


def memory_of(compiled: Any) -> StepMemory | None:
    """XLA's memory analysis, or None where the platform has none."""
    memory = compiled.memory_analysis()
    if memory is None:
        return None
    return StepMemory(
        memory.argument_size_in_bytes,
        memory.output_size_in_bytes,
        memory.temp_size_in_bytes,
        memory.alias_size_in_bytes,
    )
