"""A training step as a program of its own, for platforms that need not be here."""

from collections.abc import Sequence
from typing import Any

import jax

from convattn.lab.training.state import TrainState
from convattn.lab.training.step import Recipe, make_step

PLATFORMS = ("cpu", "cuda", "tpu")


def export_step(
    recipe: Recipe, steps: int, *arguments: Any, platforms: Sequence[str] = PLATFORMS
) -> jax.export.Exported:
    """The step of `make_step`, compiled for every platform; it can be serialised.

    It takes and gives arrays alone, in the order of `jax.tree.leaves` of (state, images, order) and
    of (state, loss): serialised, it knows nothing of the classes of this library.

    Args:
        recipe, steps: As `make_step` takes them.
        arguments: State, images and order, or their shapes.
    """
    step, structure = make_step(recipe, steps), jax.tree.structure(arguments)

    def flat(*leaves: Any) -> list[Any]:
        return jax.tree.leaves(step(*jax.tree.unflatten(structure, leaves)))

    return jax.export.export(jax.jit(flat), platforms=platforms)(*jax.tree.leaves(arguments))


def run_exported(
    exported: jax.export.Exported, state: TrainState, *arguments: Any
) -> tuple[TrainState, Any]:
    """Call an exported step as `make_step`'s is called: (state, images, order) → (state, loss)."""
    *leaves, loss = exported.call(*jax.tree.leaves((state, *arguments)))
    return jax.tree.unflatten(jax.tree.structure(state), leaves), loss
