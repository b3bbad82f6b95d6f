"""Times `with_attention` and `attention_of` on whole networks beside the networks themselves.

Source    S.network of this project's ledger; He et al. 2016; Sandler et al. 2018; Tan and Le 2019;
          Liu et al. 2022
Command   python experiments/transformation_time.py [--network NAME ...] [--rounds N] [--no-report]
          [--json FILE]
Expected  on two cores, with pointwise="keep" at most 2 times the time to compile, 1.15 times the
          time to run and 1.3 times the temporary memory; with pointwise="attention" 1.3 and 1.4 of
          the last two; the report of `attention_of` of MobileNetV2 in 30 s, of ResNet50 in 40 s, of
          EfficientNet-B0 in 45 s
Cost      ten minutes, and 4 GiB

One image of 224 × 224 pixels, float32, random parameters, which are arguments of the programs that
are timed, and constants of the function whose report is timed. In each round the programs are
traced and compiled anew, without anything that is kept from before, and take turns in running; the
least of all rounds counts. The temporary memory is XLA's count. Each line says how many of the
convolutions became attention. The report starts with nothing compiled.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from benchmarks.architectures import ARCHITECTURES
from benchmarks.environment import environment
from benchmarks.measurement import analysis, repeat, seconds_of
from flax import nnx

import convattn as ca
from convattn.cli.running import guarded
from convattn.networks.transformation.contents import remaining_convolutions

POINTWISE = ("keep", "attention")


class Costs(NamedTuple):
    """What a program takes: seconds to trace and compile and to run, and temporary bytes."""

    compiling: float
    running: float
    temporary: int


def network(name: str) -> tuple[Callable[..., Any], Any, jax.Array]:
    """A network as a function of parameters and images, with both."""
    model = ARCHITECTURES[name](rngs=nnx.Rngs(0))
    model.eval()
    definition, state = nnx.split(model)
    images = np.random.default_rng(1).normal(size=(1, 224, 224, 3))
    return (
        lambda state, images: nnx.merge(definition, state)(images),
        state,
        jnp.asarray(images, jnp.float32),
    )


def measure(functions: dict[str, Callable[..., Any]], args: Any, rounds: int) -> dict[str, Costs]:
    """The least that each takes in rounds in which they take turns, the first one another time."""
    names, costs = list(functions), dict.fromkeys(functions, Costs(np.inf, np.inf, 0))
    for number in range(rounds):
        programs = {}
        for name in names[number % len(names) :] + names[: number % len(names)]:
            jax.clear_caches()
            start = time.perf_counter()
            programs[name] = jax.jit(functions[name]).lower(*args).compile()
            seconds = time.perf_counter() - start
            costs[name] = costs[name]._replace(compiling=min(costs[name].compiling, seconds))
        runs = {name: partial(repeat, program, args) for name, program in programs.items()}
        for name, run in [*runs.items()] * 4:
            seconds = seconds_of(run, 3, time.perf_counter)
            memory = analysis(programs[name])
            costs[name] = costs[name]._replace(
                running=min(costs[name].running, seconds),
                temporary=0 if memory is None else memory.temporary,
            )
    return costs


def line(name: str, pointwise: str, converted: str, costs: Costs, plain: Costs) -> str:
    """The ratios of a transformed network."""
    ratios = [one / max(other, 1e-9) for one, other in zip(costs, plain, strict=True)]
    return (
        f"{name}, pointwise={pointwise!r}, {converted} convolutions: compiles in {ratios[0]:.2f} "
        f"times {plain.compiling:.1f} s, runs in {ratios[1]:.2f} times {1000 * plain.running:.0f} "
        f"ms, temporary memory {ratios[2]:.2f} times {plain.temporary / 2**20:.1f} MiB"
    )


def report_of(name: str) -> tuple[float, float, str]:
    """What `attention_of` takes with nothing compiled: seconds by the clock and of processor time.

    Also how many of the convolutions have attention.
    """
    function, state, images = network(name)
    total = remaining_convolutions(function, state, images) or ()
    jax.clear_caches()
    clock, processor = time.perf_counter(), time.process_time()
    report = ca.attention_of(partial(function, state), images).report
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    if not report.passed:
        raise ValueError(f"{name}: {report}")
    return clock, processor, f"{len(report.layers)} of {len(total)}"


def main() -> int:
    """Print the lines of each network."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--network", nargs="+", choices=ARCHITECTURES, default=list(ARCHITECTURES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-report", action="store_true", help="the programs only")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds={options.rounds}, but expected an integer ≥ 1")
    networks: dict[str, Any] = {}
    for name in options.network:
        function, *args = network(name)
        functions = {form: ca.with_attention(function, pointwise=form) for form in POINTWISE}
        total = len(remaining_convolutions(function, *args) or ())
        costs = measure({"convolutions": function, **functions}, args, options.rounds)
        networks[name] = {"programs": {form: cost._asdict() for form, cost in costs.items()}}
        for form in POINTWISE:
            left = len(remaining_convolutions(functions[form], *args) or ())
            converted = f"{total - left} of {total}"
            print(line(name, form, converted, costs[form], costs["convolutions"]), flush=True)
            networks[name]["programs"][form]["converted"] = converted
        if not options.no_report:
            clock, processor, converted = report_of(name)
            print(
                f"{name}, report, {converted} convolutions: {clock:.1f} s by the clock, "
                f"{processor:.1f} s of processor time",
                flush=True,
            )
            networks[name]["report"] = {
                "seconds": clock,
                "processor": processor,
                "converted": converted,
            }
    if options.json:
        document = {"environment": environment(None), "networks": networks}
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(guarded("experiments/transformation_time.py", main))
