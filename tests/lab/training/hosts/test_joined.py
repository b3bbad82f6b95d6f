"""What is not for several processes is refused in them."""

import jax
import pytest

from convattn.lab.runs.experiment import Experiment, run_experiment
from convattn.lab.training.hosts import joined_processes, one_process_alone


def test_one_process_joins_none():
    with joined_processes() as processes:
        assert (processes.index, processes.count, processes.agree("x", 5)) == (0, 1, [5])


def test_an_experiment_of_several_is_refused(monkeypatch, tmp_path):
    """And leaves no folder; in one process nothing is refused."""
    one_process_alone("a script")
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: True)
    one_process_alone("a script")  # one that was started as the only one of one
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    given = Experiment("a script", None, None, None, None, {}, lambda outcome: {})
    with pytest.raises(ValueError, match="runs in one process, but this is process 0 of 2"):
        run_experiment(given, tmp_path / "run", command="")
    assert not (tmp_path / "run").exists()
