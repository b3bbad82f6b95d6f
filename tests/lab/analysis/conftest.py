from collections.abc import Iterator

import pytest
from lab.runs.quick_compilation import quick_compilation


@pytest.fixture(scope="module", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with quick_compilation(tmp_path_factory.mktemp("programs")):
        yield
