from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.analysis.synthetic_runs import write_pruning, write_run
from lab.runs.quick_compilation import quick_compilation


@pytest.fixture(scope="module", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with quick_compilation(tmp_path_factory.mktemp("programs")):
        yield


@pytest.fixture(scope="session")
def stored_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, only to be read."""
    return write_run(tmp_path_factory.mktemp("runs") / "stored")


@pytest.fixture(scope="session")
def pruned_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was pruned, only to be read."""
    return write_pruning(write_run(tmp_path_factory.mktemp("runs") / "pruned"))
