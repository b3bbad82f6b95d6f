"""Over which devices a batch is spread, in one process or in several."""

from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

DATA = "data"


def data_mesh(batch_size: int, devices: int | None = None) -> Mesh:
    """The devices of all processes in one row, in the order of the processes.

    Args:
        devices: How many of each process; all if not given.

    Raises:
        ValueError: If there are fewer, or if they do not divide the batch.

    >>> data_mesh(100, 1).size
    1
    """
    present = [jax.local_devices(process) for process in range(jax.process_count())]
    count = max(map(len, present)) if devices is None else devices
    fewest = min(present, key=len)
    if count > len(fewest):
        whose, remedy = "this machine", "ask for fewer, or leave it out to take all"
        if len(present) > 1:
            whose = f"process {present.index(fewest)}"
            remedy = f"every process gives as many: --training.devices {len(fewest)}"
        raise ValueError(
            f"devices={count}, but {whose} has {len(fewest)} ({fewest[0].platform}); {remedy}"
        )
    row = [device for own in present for device in own[:count]]
    if batch_size % len(row):
        raise ValueError(
            f"batch_size={batch_size} is no multiple of the {len(row)} devices that share it; take "
            f"{batch_size - batch_size % len(row) or len(row)}, or give devices"
        )
    return Mesh(np.array(row), (DATA,), axis_types=(AxisType.Auto,))


def replicated(mesh: Mesh) -> NamedSharding:
    """Every device holds the whole array."""
    return NamedSharding(mesh, PartitionSpec())


def spread(mesh: Mesh) -> NamedSharding:
    """Every device holds its part of the first axis."""
    return NamedSharding(mesh, PartitionSpec(DATA))


def place(tree: Any, mesh: Mesh) -> Any:
    """Arrays of the host on every device; all processes must give the same, and nothing is sent."""
    sharding = replicated(mesh)
    return jax.tree.map(lambda leaf: jax.make_array_from_process_local_data(sharding, leaf), tree)


def here(tree: Any) -> Any:
    """The copies that this process holds of arrays that every device holds."""
    return jax.tree.map(
        lambda array: array if array.is_fully_addressable else array.addressable_data(0), tree
    )
