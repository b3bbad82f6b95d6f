"""Quick compilation, and a cache of compiled programs for the processes that a test starts."""

from collections.abc import Iterator
from pathlib import Path

import jax
import pytest


@pytest.fixture(scope="module")
def quick_compilation() -> Iterator[None]:
    """Programs run once or twice, so most of XLA's optimizations cost more than they save."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(scope="module")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where compiled programs are kept."""
    return tmp_path_factory.mktemp("compiled")
