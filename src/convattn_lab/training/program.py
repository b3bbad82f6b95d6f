"""The compiled programs: some steps of an epoch in one call, and the evaluation of a batch.

Where it pays, all steps of a call are one loop inside the program. XLA's CPU back end runs a
convolution inside a loop on one thread with its slow code (measured: four 3 × 3 convolutions of 32
channels, forward and backward, 34 times slower than outside), so there a model with convolutions
takes one call of the program for each step; at some ten milliseconds a step or more, the calls
themselves cost nothing that can be measured.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array, lax
from jax.sharding import Mesh

from convattn_lab.training.devices import place, replicated
from convattn_lab.training.examples import count_of
from convattn_lab.training.state import TrainState
from convattn_lab.training.step import (
    Recipe,
    correct_positions,
    cross_entropy,
    make_step,
    mean_over_positions,
    order_of_epoch,
)

# XLA's CPU back end otherwise draws the numbers of every dropout first, and holds them.
LOW_MEMORY: dict[str, str | bool] = {
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"
}


def compiler_options(platform: str) -> dict[str, str | bool] | None:
    """What a training step is compiled with: on a CPU, in an order that holds little at once.

    Measured: C20's quadratic model at batch 100 takes 3.4 GiB in place of 4.9, in the same time.

    >>> compiler_options("tpu") is None
    True
    """
    return LOW_MEMORY if platform == "cpu" else None


@dataclass(frozen=True)
class Program:
    """The compiled steps of a run.

    Attributes:
        advance: (state, data, order, steps) → (state, losses `[steps]`). The state given is used
            up. Shapes are those it was compiled for. Steps must not reach beyond the epoch.
        order: State → the order of the pictures in its epoch.
        looped: Whether the steps of a call are a loop inside the program.
    """

    advance: Callable[[TrainState, Any, Array, int], tuple[TrainState, np.ndarray]]
    order: Callable[[TrainState], Array]
    looped: bool


def compile_program(
    recipe: Recipe, mesh: Mesh, state: TrainState, data: Any, steps: int
) -> Program:
    """Compile the steps for these shapes, here and now, so that no step has to wait for it.

    Args:
        state, data: As they will be given, replicated over the mesh; nothing is used up.
        steps: Of an epoch.
    """
    replication = replicated(mesh)
    count = count_of(data)
    order = jax.jit(partial(order_of_epoch, count=count, steps=steps), out_shardings=replication)
    step = make_step(recipe, steps)
    example = jax.ShapeDtypeStruct((count,), jnp.int32, sharding=replication)
    platform = mesh.devices.flat[0].platform
    looped = platform != "cpu" or not has_convolution(step, state, data, example)
    _, loss_of_step = jax.eval_shape(step, state, data, example)

    def loop(state: TrainState, data: Any, order: Array, count: Array) -> tuple[TrainState, Array]:
        def body(number: Array, carry: tuple[TrainState, Array]) -> tuple[TrainState, Array]:
            state, losses = carry
            state, loss = step(state, data, order)
            return state, losses.at[number].set(loss)

        return lax.fori_loop(0, count, body, (state, jnp.zeros(steps, loss_of_step.dtype)))

    number = (jax.ShapeDtypeStruct((), jnp.int32, sharding=replication),) if looped else ()
    program = jax.jit(loop if looped else step, donate_argnums=0, out_shardings=replication)
    call = program.lower(state, data, example, *number).compile(compiler_options(platform))

    def advance(
        state: TrainState, data: Any, order: Array, count: int
    ) -> tuple[TrainState, np.ndarray]:
        if looped:
            state, losses = call(state, data, order, place(np.array(count, np.int32), mesh))
            return state, np.asarray(jax.device_get(losses))[:count]
        single = []
        for _ in range(count):
            state, loss = call(state, data, order)
            single.append(loss)
        return state, np.asarray(jax.device_get(single))

    return Program(advance, order, looped)


@jax.jit
def is_finite(tree: Any) -> Array:
    """Whether all floating-point numbers of a tree are finite.

    >>> bool(is_finite({"a": jnp.ones(2), "b": jnp.array(1)})), bool(is_finite([jnp.inf]))
    (True, False)
    """
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    floats = [leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return jnp.all(jnp.array([jnp.isfinite(leaf).all() for leaf in floats]))


def has_convolution(function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether a function convolves anywhere inside.

    >>> has_convolution(lambda x: x + 1, jnp.ones(3))
    False
    """
    return "conv_general_dilated" in str(jax.make_jaxpr(function)(*arguments))


def compile_evaluation(
    recipe: Recipe, mesh: Mesh, batch_size: int
) -> Callable[[TrainState, Any], tuple[float, float]]:
    """The function (state, data) → (mean loss, accuracy), nothing drawn and nothing changed.

    Args:
        batch_size: Examples at a time; the last batch is filled up, and what fills it is not
            counted.
    """
    dtype = jnp.dtype(recipe.settings.compute_dtype)

    @partial(jax.jit, out_shardings=replicated(mesh))
    def judge(state: TrainState, data: Any, first: Array) -> tuple[Array, Array]:
        model = nnx.merge(recipe.structure, state.parameters, state.statistics)
        numbers = first + jnp.arange(batch_size)
        counted = numbers < count_of(data)
        indices = lax.with_sharding_constraint(numbers % count_of(data), recipe.batch)
        inputs, targets = recipe.examples.load(data, indices, None, dtype)
        logits = model(inputs)
        losses = mean_over_positions(cross_entropy(logits, targets, 0.0))
        right = jnp.where(counted, correct_positions(logits, targets), 0)
        positions = logits.size // (batch_size * logits.shape[-1])
        return jnp.sum(jnp.where(counted, losses, 0)), jnp.sum(right) / positions

    def evaluate(state: TrainState, data: Any) -> tuple[float, float]:
        count = count_of(data)
        totals = [judge(state, data, np.int32(n)) for n in range(0, count, batch_size)]
        losses, right = zip(*jax.device_get(totals), strict=True)
        means = [float(np.sum(values, dtype=np.float64)) / count for values in (losses, right)]
        return means[0], means[1]

    return evaluate
