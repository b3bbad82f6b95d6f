from pathlib import Path

import pytest
from lab.analysis.synthetic_runs import write_pruning, write_run


@pytest.fixture(scope="session")
def stored_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, only to be read."""
    return write_run(tmp_path_factory.mktemp("runs") / "stored")


@pytest.fixture(scope="session")
def pruned_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was pruned, only to be read."""
    return write_pruning(write_run(tmp_path_factory.mktemp("runs") / "pruned"))
