"""Compiling a tiny training step takes longer than all of its steps: less effort, and once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache

OPTIONS = {
    "jax_disable_most_optimizations": True,
    "jax_persistent_cache_min_compile_time_secs": 0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


@contextmanager
def quick_compilation(folder: Path) -> Iterator[None]:
    """Within it, programs are compiled with few optimisations, and kept.

    Args:
        folder: Where, if there is no cache that all tests share.
    """
    shared = jax.config.jax_compilation_cache_dir
    wanted = {**OPTIONS, "jax_compilation_cache_dir": shared or str(folder)}
    before = {name: jax.config.values[name] for name in wanted}
    set_all(wanted)
    try:
        yield
    finally:
        set_all(before)


def set_all(values: dict[str, object]) -> None:
    for name, value in values.items():
        jax.config.update(name, value)
    reset_cache()  # or it goes on as it was first used
