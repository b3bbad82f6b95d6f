"""Quick compilation, and a cache of compiled programs for the processes that a test starts."""

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where compiled programs are kept."""
    return tmp_path_factory.mktemp("compiled")
