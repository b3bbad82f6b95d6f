"""Over which devices a batch is spread."""

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

DATA = "data"


def data_mesh(batch_size: int, devices: int | None = None) -> Mesh:
    """The local devices in one row.

    **Arguments:**

    - `devices`: how many of them; all if not given.

    **Raises:** `ValueError` if there are fewer, or if they do not divide the batch.

    >>> data_mesh(100, 1).size
    1
    """
    present = jax.local_devices()
    count = len(present) if devices is None else devices
    if count > len(present):
        raise ValueError(
            f"devices={count}, but this machine has {len(present)} ({present[0].platform}); ask "
            "for fewer, or leave it out to take all"
        )
    if batch_size % count:
        raise ValueError(
            f"batch_size={batch_size} is no multiple of the {count} devices that share it; take "
            f"{batch_size - batch_size % count or count}, or give devices"
        )
    return jax.make_mesh((count,), (DATA,), (AxisType.Auto,), devices=present[:count])


def replicated(mesh: Mesh) -> NamedSharding:
    """Every device holds the whole array."""
    return NamedSharding(mesh, PartitionSpec())


def spread(mesh: Mesh) -> NamedSharding:
    """Every device holds its share of the first axis."""
    return NamedSharding(mesh, PartitionSpec(DATA))
