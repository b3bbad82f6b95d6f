"""In what processes that train together must be alike, besides the identity of the run."""

import zlib
from typing import Any

import jax
import jaxlib
import numpy as np

from convattn.lab.training.devices import here
from convattn.lab.training.settings import TrainingSettings
from convattn.lab.training.state import named_arrays

FLAGS = ("jax_enable_x64", "jax_default_matmul_precision", "jax_threefry_partitionable")


def environment_of(settings: TrainingSettings) -> dict[str, Any]:
    """Versions and settings that decide which program is compiled.

    >>> environment_of(TrainingSettings(devices=2))["devices"]
    2
    """
    return {
        "devices": settings.devices,
        "steps_per_call": settings.steps_per_call,
        "the version of JAX": [jax.__version__, jaxlib.__version__],
        **{name: getattr(jax.config, name) for name in FLAGS},
        "the kind of device": jax.local_devices()[0].device_kind,
    }


def sums_of(held: dict[str, Any]) -> dict[str, list[Any]]:
    """For each set of examples the types, sizes and CRC-32 of its arrays.

    >>> sums_of({"test": {"labels": jax.numpy.zeros(2, "uint8")}})
    {'test examples': ['uint8', [2], 1104745215]}
    """
    found: dict[str, list[Any]] = {}
    for name, part in held.items():
        sums: list[Any] = []
        for array in named_arrays(here(part)).values():
            content = np.ascontiguousarray(array)
            sums += [array.dtype.name, list(array.shape), zlib.crc32(content.data)]
        found[f"{name} examples"] = sums
    return found
