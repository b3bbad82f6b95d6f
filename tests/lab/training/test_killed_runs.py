"""A run that is killed at any moment, and goes on until it is done, ends with the same bits."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from comparison import assert_equal
from lab.training.session_process import EPOCHS, settings_of_the_run
from lab.training.tiny import Normalized, parts, pictures, training_images

from convattn_lab.training.checkpoints import BEST, CHECKPOINTS, CheckpointStore
from convattn_lab.training.metrics import read_metrics
from convattn_lab.training.state import named_arrays

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("session_process.py")
PATHS = [str(SCRIPT.parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
STEPS = 4 * EPOCHS
TIMES = ("seconds", "images_per_second")
TRIALS = int(os.environ.get("CONVATTN_KILLED_RUNS", "1"))  # `make crash` makes more


@contextmanager
def training_process(folder, cache):
    """The process, once it is ready to train."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}
    environment.pop("JAX_ENABLE_X64", None)
    with subprocess.Popen(
        [sys.executable, SCRIPT, folder, cache],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
            yield process
        finally:
            process.kill()


def finished(folder, cache):
    """What a process says that nobody kills."""
    with training_process(folder, cache) as process:
        told, problems = process.communicate(timeout=120)
        assert process.returncode == 0, problems
    return told.splitlines()


@pytest.fixture(scope="module")
def whole(tmp_path_factory, cache_folder):
    """The folder and last line of a run that nothing interrupts, compiled there and then."""
    folder = tmp_path_factory.mktemp("whole")
    last = finished(folder, cache_folder)[-1]
    assert last.startswith(f"finished {STEPS} ")
    assert list(cache_folder.iterdir())  # so that the others take it from there
    return folder, last


def arrays(folder, name):
    """The newest state there: parameters, statistics, optimiser, key, step."""
    images = training_images(validation=pictures(24, 2))
    _, _, like, _, _ = parts(Normalized(), settings_of_the_run(), images)
    found = CheckpointStore(folder / name).restore_newest(like, set_aside=False)
    return {**named_arrays(found.state), "at": found.step, "best": found.record["best_step"]}


def lines(folder):
    found = read_metrics(folder)
    return [{name: line[name] for name in line if name not in TIMES} for line in found]


def assert_same_run(folder, expected):
    """The same metrics, and the same bits of everything that the last step left."""
    assert lines(folder) == lines(expected)
    assert [line["epoch"] for line in lines(folder)] == list(range(1, EPOCHS + 1))
    for name in (CHECKPOINTS, BEST):
        found, wanted = arrays(folder, name), arrays(expected, name)
        assert found.keys() == wanted.keys()
        for array in found:
            assert_equal(found[array], wanted[array], f"{name}: {array}")


def newest(folder):
    return max(CheckpointStore(folder / CHECKPOINTS).steps(), default=0)


def being_written(folder):
    """Whether a checkpoint is being written at this moment."""
    place = folder / CHECKPOINTS
    return place.is_dir() and any("tmp" in name for name in os.listdir(place))


@pytest.mark.parametrize("seed", range(5, 5 + TRIALS))
def test_killed_at_random_moments(tmp_path, cache_folder, whole, seed):
    """Drawn for each process: after some time, after some more steps, or amid a checkpoint."""
    draw = random.Random(seed)
    reached, kills = [], []
    for kill in ("steps", "writing", "time", "writing"):
        begun = newest(tmp_path)
        further, seconds = draw.randint(1, STEPS // 5), draw.uniform(0.0, 2.0)
        with training_process(tmp_path, cache_folder) as process:
            started = time.monotonic()
            while process.poll() is None:
                if kill == "time":
                    time.sleep(seconds)
                    break
                on = newest(tmp_path) - begun >= further
                if on and (kill == "steps" or being_written(tmp_path)):
                    break
                assert time.monotonic() - started < 60
            process.send_signal(signal.SIGKILL)  # nothing, if it has ended
            process.wait(timeout=60)
        assert process.returncode in (0, -signal.SIGKILL)
        if process.returncode == -signal.SIGKILL:
            kills.append(kill)
        reached.append(newest(tmp_path))
    assert kills[0] == "steps", kills
    assert len(kills) >= 2, kills
    assert 0 < reached[0] < STEPS, reached
    assert len(set(reached)) > 1, reached
    assert finished(tmp_path, cache_folder)[-1] == whole[1]
    assert_same_run(tmp_path, whole[0])


def test_a_run_that_differs_is_told_apart(tmp_path, whole):
    """Planted: a metrics line that is missing, and an older checkpoint."""
    for change in ("metrics", "checkpoint"):
        copy = tmp_path / change
        shutil.copytree(whole[0], copy)
        if change == "metrics":
            path = copy / "metrics.jsonl"
            path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
        else:
            shutil.rmtree(copy / CHECKPOINTS / str(STEPS))
        with pytest.raises(AssertionError):
            assert_same_run(copy, whole[0])
