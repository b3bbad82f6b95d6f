"""A process that trains a tiny model in a folder, to be killed: FOLDER CACHE.

It says "ready" before it begins and its outcome at the end.
"""

import sys
from pathlib import Path
from typing import Any

EPOCHS = 8


def cache_options(folder: Path | str) -> dict[str, Any]:
    """JAX keeps everything that it compiles in this folder."""
    return {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }


def settings_of_the_run() -> Any:
    """Every step is a call and a checkpoint; the best epoch is kept."""
    from lab.training.tiny import settings

    return settings(epochs=EPOCHS, select="best", learning_rate=0.5)


def main(folder: str, cache: str) -> None:
    """Train, or go on training."""
    import jax
    from lab.training.tiny import Normalized, pictures, run, training_images
    from rich.console import Console

    for name, value in cache_options(cache).items():
        jax.config.update(name, value)

    print("ready", flush=True)
    outcome = run(
        Path(folder),
        settings_of_the_run(),
        model=Normalized(),
        images=training_images(validation=pictures(24, 2)),
        console=Console(width=200),
    )
    print(outcome.status, outcome.step, repr(outcome.test_loss), repr(outcome.test_accuracy))


if __name__ == "__main__":
    main(*sys.argv[1:])
