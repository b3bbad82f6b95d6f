"""One compilation cache for the runs of a module, and for the processes that it starts."""

from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache
from lab.training.session_process import cache_options


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


@pytest.fixture(scope="module")
def compiled_once(cache_folder: Path) -> Iterator[None]:
    """What was compiled before is taken from there, in this process."""
    given = cache_options(cache_folder)
    before = {name: getattr(jax.config, name) for name in given}
    for name, value in given.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
