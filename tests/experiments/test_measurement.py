from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from benchmarks.measurement import PAUSE, Runner, jax_runner, take_turns
from benchmarks.resident import in_fresh_process, status

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
MIB = 2**20
TUPLE_TABLE = 1024


class Clock:
    """A clock that only the runs of the contestants move."""

    def __init__(self):
        self.now = 0.0
        self.order = []

    def __call__(self):
        return self.now

    def runner(self, name, forward, backward):
        def run(seconds):
            def repeated(times):
                self.order.append((name, times))
                self.now += times * seconds

            return repeated

        return Runner(run(forward), run(backward), None)


def turns_of(runners, clock, turns=3, time_limit=60.0):
    paused = []
    times = take_turns(runners, turns, 1.0, time_limit, clock, paused.append)
    return times, paused


def test_every_turn_times_everybody_once_each_way() -> None:
    clock = Clock()
    runners = {"a": clock.runner("a", 0.25, 0.5), "b": clock.runner("b", 0.125, 2.0)}
    times, paused = turns_of(runners, clock)
    assert times["a"].forward == [0.25] * 3
    assert times["a"].backward == [0.5] * 3
    assert times["b"].forward == [0.125] * 3
    assert times["b"].backward == [2.0] * 3
    assert paused == [PAUSE] * 12


def test_a_turn_lasts_at_least_as_long_as_asked_and_another_one_begins_each_time() -> None:
    clock = Clock()
    runners = {"a": clock.runner("a", 0.25, 0.5), "b": clock.runner("b", 0.125, 2.0)}
    turns_of(runners, clock)
    warm = [("a", 1)] * 4 + [("b", 1)] * 4
    a, b = [("a", 4), ("a", 2)], [("b", 8), ("b", 1)]
    assert clock.order == warm + a + b + b + a + a + b


def test_who_exceeds_the_limit_is_timed_by_its_warm_up_alone() -> None:
    clock = Clock()
    runners = {"slow": clock.runner("slow", 4.0, 8.0), "quick": clock.runner("quick", 0.5, 1.0)}
    times, _ = turns_of(runners, clock, time_limit=11.0)
    assert times["slow"].backward == [8.0]
    assert clock.order.count(("slow", 1)) == 2
    assert len(times["quick"].backward) == 3
    assert turns_of(runners, Clock(), time_limit=12.0)[0]["slow"].forward == [0.0] * 3


def linear(matrix, images):
    return jnp.matmul(images, matrix, precision=jax.lax.Precision.HIGHEST)


@pytest.mark.slow
def test_the_backward_program_returns_the_output_and_every_gradient() -> None:
    matrix, images = jnp.ones((32, 48)), jnp.ones((1, 8, 8, 32))
    runner = jax_runner(linear, matrix, images)
    output = images.nbytes // 32 * 48
    gradients = matrix.nbytes + images.nbytes
    assert runner.memory.arguments >= gradients + output  # the cotangent is as large as the output
    assert output + gradients <= runner.memory.outputs <= output + gradients + TUPLE_TABLE
    # Without the output the program would be smaller than the test allows.
    assert output > TUPLE_TABLE
    runner.forward(2)
    runner.backward(2)


@pytest.mark.skipif(status("VmHWM") is None, reason="the high-water mark is Linux's")
def test_resident_increase_sees_what_is_freed_again(tmp_path) -> None:
    """In a process of its own, as it is meant to be: others free memory while it is measured."""
    script = tmp_path / "script.py"
    script.write_text(
        f"""
import json, sys
sys.path.insert(0, {str(EXPERIMENTS)!r})
from benchmarks.resident import high_water_mark, resident_increase

def hold():
    bytearray(64 * {MIB}).count(1)

assert resident_increase(lambda: None) < 8 * {MIB}
found = resident_increase(hold)
assert high_water_mark() >= 60 * {MIB}
print(json.dumps({{"resident": found}}))
"""
    )
    increase = in_fresh_process(script, [])
    assert increase is not None
    assert 60 * MIB <= increase < 96 * MIB
    assert status("VmNothing") is None


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("import json, sys; print(json.dumps({'resident': int(sys.argv[1])}))", 7),
        ("print('no JSON')", None),
        ("print('{}')", None),
        ("import sys; print('{\"resident\": 7}'); sys.exit(1)", None),
    ],
)
def test_a_fresh_process_is_believed_only_if_it_succeeds(tmp_path, program, expected) -> None:
    script = tmp_path / "script.py"
    script.write_text(program)
    assert in_fresh_process(script, ["7"]) == expected
