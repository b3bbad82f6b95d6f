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
from lab.training.session_process import EPOCHS, settings_of_the_run
from lab.training.tiny import (
    Normalized,
    assert_same_arrays,
    images_with_validation,
    metric_lines,
    process_environment,
    set_up,
)

from convattn_lab.training.checkpoints import BEST, CHECKPOINTS, CheckpointStore
from convattn_lab.training.state import named_arrays

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("session_process.py")
STEPS = 4 * EPOCHS
TRIALS = int(os.environ.get("CONVATTN_KILLED_RUNS", "1"))  # `make crash` makes more


@contextmanager
def training_process(folder, cache):
    """The process, once it is ready to train."""
    with subprocess.Popen(
        [sys.executable, SCRIPT, folder, cache],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=process_environment(),
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
            yield process
        finally:
            process.kill()


def last_line(folder, cache):
    """The outcome of a process that nobody kills."""
    with training_process(folder, cache) as process:
        output, problems = process.communicate(timeout=120)
        assert process.returncode == 0, problems
    return output.splitlines()[-1]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, cache_folder):
    """The folder and last line of a run that nothing interrupts, compiled there and then."""
    folder = tmp_path_factory.mktemp("whole")
    last = last_line(folder, cache_folder)
    assert last.startswith(f"finished {STEPS} ")
    assert list(cache_folder.iterdir())  # so that the others take it from there
    return folder, last


def arrays(folder, name):
    """The newest state there: parameters, statistics, optimiser, key, step."""
    _, _, like, _, _ = set_up(Normalized(), settings_of_the_run(), images_with_validation())
    restored = CheckpointStore(folder / name).restore_newest(like, set_aside=False)
    best = restored.record["best_step"]
    return {**named_arrays(restored.state), "at": restored.step, "best": best}


def assert_same_run(folder, expected):
    """The same metrics, and the same bits of everything that the last step left."""
    assert metric_lines(folder) == metric_lines(expected)
    assert [line["epoch"] for line in metric_lines(folder)] == list(range(1, EPOCHS + 1))
    for name in (CHECKPOINTS, BEST):
        assert_same_arrays(arrays(folder, name), arrays(expected, name))


def newest(folder):
    return max(CheckpointStore(folder / CHECKPOINTS).steps(), default=0)


def is_writing(folder):
    """Whether a checkpoint is being written at this moment."""
    folder = folder / CHECKPOINTS
    return folder.is_dir() and any("tmp" in name for name in os.listdir(folder))


@pytest.mark.parametrize("seed", range(5, 5 + TRIALS))
def test_killed_at_random_moments(tmp_path, cache_folder, uninterrupted, seed):
    """Drawn for each process: after some time, after some more steps, or amid a checkpoint."""
    draw = random.Random(seed)
    reached, kills = [], []
    for kill in ("steps", "writing", "time", "writing"):
        first = newest(tmp_path)
        further, seconds = draw.randint(1, STEPS // 5), draw.uniform(0.0, 2.0)
        with training_process(tmp_path, cache_folder) as process:
            started = time.monotonic()
            while process.poll() is None:
                if kill == "time":
                    time.sleep(seconds)
                    break
                advanced = newest(tmp_path) - first >= further
                if advanced and (kill == "steps" or is_writing(tmp_path)):
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
    assert last_line(tmp_path, cache_folder) == uninterrupted[1]
    assert_same_run(tmp_path, uninterrupted[0])


@pytest.mark.parametrize("change", ["metrics", "checkpoint"])
def test_a_run_that_differs_is_noticed(tmp_path, uninterrupted, change):
    """Planted: a metrics line that is missing, and an older checkpoint."""
    copy = shutil.copytree(uninterrupted[0], tmp_path / "copy")
    if change == "metrics":
        path = copy / "metrics.jsonl"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    else:
        shutil.rmtree(copy / CHECKPOINTS / str(STEPS))
    with pytest.raises(AssertionError):
        assert_same_run(copy, uninterrupted[0])
