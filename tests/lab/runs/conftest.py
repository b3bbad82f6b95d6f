from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.runs.quick_compilation import quick_compilation
from lab.runs.tiny_runs import write_pictures


@pytest.fixture(scope="module", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with quick_compilation(tmp_path_factory.mktemp("programs")):
        yield


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("data") / "pictures")
