"""Contestants that take turns, and the memory that XLA says they take.

The backward pass is timed together with the forward one in a program that returns the output and
the gradients: a program that returns gradients alone loses the forward pass of whatever is linear,
and would flatter the convolution by a third.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import Array

PAUSE = 0.01


class Memory(NamedTuple):
    """Bytes of a compiled forward and backward pass, by XLA's analysis."""

    arguments: int
    outputs: int
    temporary: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.arguments + self.outputs + self.temporary


class Cost(NamedTuple):
    """What XLA counts in a compiled forward and backward pass: operations, and bytes accessed."""

    flops: float
    bytes: float


class Runner(NamedTuple):
    """One implementation, ready to run: each function runs a pass that many times and waits.

    `memory` and `cost` are those of the forward and backward pass, or None where nobody can tell.
    """

    forward: Callable[[int], None]
    backward: Callable[[int], None]
    memory: Memory | None
    cost: Cost | None = None


class Times(NamedTuple):
    """Seconds of each turn: forward alone, and forward and backward."""

    forward: list[float]
    backward: list[float]


def jax_runner(apply: Callable[[Any, Array], Array], parameters: Any, images: Array) -> Runner:
    """Compile `apply` alone, and with its gradients by all parameters and by the images."""
    shape = jax.eval_shape(apply, parameters, images)
    cotangent = jax.random.normal(jax.random.key(8), shape.shape).astype(shape.dtype)

    def both(parameters: Any, images: Array, cotangent: Array) -> tuple[Array, Any]:
        outputs, pull_back = jax.vjp(apply, parameters, images)
        return outputs, pull_back(cotangent)

    forward = jax.jit(apply).lower(parameters, images).compile()
    backward = jax.jit(both).lower(parameters, images, cotangent).compile()
    return Runner(
        lambda times: repeat(forward, (parameters, images), times),
        lambda times: repeat(backward, (parameters, images, cotangent), times),
        analysis(backward),
        cost_of(backward),
    )


def repeat(function: Callable[..., Any], arguments: tuple[Any, ...], times: int) -> None:
    """Call it that many times and wait for the last."""
    for _ in range(times):
        result = function(*arguments)
    jax.block_until_ready(result)


def analysis(compiled: Any) -> Memory | None:
    """XLA's memory analysis of a compiled program, or None where the platform has none."""
    memory = compiled.memory_analysis()
    if memory is None:
        return None
    return Memory(
        memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.temp_size_in_bytes
    )


def cost_of(compiled: Any) -> Cost | None:
    """XLA's cost analysis of a compiled program, or None where the platform has none.

    >>> cost_of(jax.jit(lambda x: x @ x).lower(jax.numpy.ones((4, 4))).compile()).flops
    128.0
    """
    cost = compiled.cost_analysis()
    cost = cost[0] if isinstance(cost, list) and cost else cost
    if not cost or "flops" not in cost:
        return None
    return Cost(float(cost["flops"]), float(cost.get("bytes accessed", 0.0)))


def take_turns(
    runners: dict[str, Runner],
    turns: int,
    turn_seconds: float,
    time_limit: float,
    clock: Callable[[], float] = time.perf_counter,
    pause: Callable[[float], None] = time.sleep,
) -> dict[str, Times]:
    """Time every implementation in every turn, another one first each time.

    The first runs warm up; how often a pass is repeated in a turn follows from the second. A
    implementation whose warm-up exceeds the time limit is timed by that alone.

    Args:
        turn_seconds: How long a pass is repeated for.
        clock, pause: The pause lets the threads of the one before go to sleep.
    """
    times: dict[str, Times] = {}
    repeats: dict[str, tuple[int, int]] = {}
    for name, runner in runners.items():
        first = Times(*([seconds_of(run, 1, clock)] for run in runner[:2]))
        if first.forward[0] + first.backward[0] > time_limit:
            times[name] = first
            continue
        times[name] = Times([], [])
        once = [max(seconds_of(run, 1, clock), 1e-7) for run in runner[:2]]
        forward, backward = (max(1, round(turn_seconds / seconds)) for seconds in once)
        repeats[name] = forward, backward
    names = list(repeats)
    for turn in range(turns):
        start = turn % max(1, len(names))
        for name in names[start:] + names[:start]:
            for run, count, taken in zip(
                runners[name][:2], repeats[name], times[name], strict=True
            ):
                pause(PAUSE)
                taken.append(seconds_of(run, count, clock))
    return times


def seconds_of(run: Callable[[int], None], times: int, clock: Callable[[], float]) -> float:
    """Seconds of one run, from that many in a row."""
    start = clock()
    run(times)
    return (clock() - start) / times
