"""What a back end's work is expected to take: four rates, fitted to measured times.

The rates are those of a step of training, forward and backward, for which the work of the forward
pass stands: the backward pass takes about twice the products, numbers and calls of the forward one
in every back end. `experiments/fit_cost_model.py` fits them, nonnegative, to the relative errors on
the times that `experiments/bench.py` has measured.

Rates that were measured on a device stand in a file of the user's, `rates_file()`, by the kind of
the device. They come before those of its platform.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import jax

from convattn.fast.backend import Work
from convattn.files import parse_json, read_file


class Rates(NamedTuple):
    """Seconds of a forward and backward pass for each unit of the work of the forward pass.

    Attributes:
        product: A multiplication in a matrix product.
        moved: A number that an elementwise pass reads or writes.
        exponential: An exponential of a softmax.
        call: An operation that is launched.
    """

    product: float
    moved: float
    exponential: float
    call: float


# Those of "gpu" are guesses, since none was at hand.
RATES = {"cpu": Rates(5.0e-11, 7.7e-10, 2.0e-9, 8.2e-6), "gpu": Rates(3e-14, 1e-12, 2e-12, 5e-6)}
VARIABLE = "CONVATTN_RATES"


def rates_file() -> Path:
    """Where rates that were measured stand.

    The file that CONVATTN_RATES names, or convattn/rates.json in the user's folder of settings.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named)
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return settings / "convattn" / "rates.json"


def read_rates(path: Path) -> dict[str, Rates]:
    """Rates by the kind of device; empty without a file.

    Raises:
        ValueError: If it is damaged.
    """
    if not path.is_file():
        return {}
    try:
        rates_by_kind = {
            kind: Rates(**rates) for kind, rates in parse_json(read_file(path)).items()
        }
        if not all(0 <= rate < float("inf") for rates in rates_by_kind.values() for rate in rates):
            raise ValueError("a rate is negative or infinite")
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} holds no rates ({error}), but expected those that `convattn accelerator` "
            f"writes; delete it, or name another file by {VARIABLE}"
        ) from error
    return rates_by_kind


@lru_cache
def _read(path: Path, changed: int) -> dict[str, Rates]:
    return read_rates(path)


def rates_of(platform: str) -> Rates:
    """Those of this device, if they were measured, else those of its platform.

    Args:
        platform: As `jax.default_backend()` names it; one without rates is taken for a GPU.

    Raises:
        ValueError: As `read_rates`.
    """
    path = rates_file()
    if platform == jax.default_backend() and path.is_file():
        known = _read(path, path.stat().st_mtime_ns)
        if (kind := jax.devices()[0].device_kind) in known:
            return known[kind]
    return RATES.get(platform, RATES["gpu"])


def seconds(work: Work, platform: str) -> float:
    """The expected time of a forward and backward pass, Σ rate · count.

    Args:
        work: Of the forward pass.
        platform: As for `rates_of`.

    >>> seconds(Work(1e9, 0.0, 0.0, 0.0), "cpu") > seconds(Work(1e9, 0.0, 0.0, 0.0), "gpu")
    True
    """
    return sum(rate * count for rate, count in zip(rates_of(platform), work, strict=True))
