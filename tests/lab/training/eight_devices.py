"""The step of a small model on all devices of this process, exported for every platform and run.

Prints how many devices there are, and the platforms that it was lowered for.
"""

import jax
import jax.export
import numpy as np
from lab.training.tiny import Dense, set_up, settings, training_images

from convattn_lab.training.step import make_step, order_of_epoch

PLATFORMS = ("cpu", "cuda", "tpu")


def main() -> None:
    """Export, run, compare."""
    recipe, _, state, data, steps = set_up(
        Dense(), settings(batch_size=16, devices=jax.device_count()), training_images(64)
    )
    order = order_of_epoch(state, 64, steps)
    leaves, structure = jax.tree.flatten((state, data, order))
    step = make_step(recipe, steps)

    @jax.jit
    def flat(*leaves):
        return jax.tree.leaves(step(*jax.tree.unflatten(structure, leaves)))

    exported = jax.export.export(flat, platforms=PLATFORMS)(*leaves)
    assert exported.nr_devices == jax.device_count()
    for one, other in zip(exported.call(*leaves), flat(*leaves), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    print(exported.nr_devices, *exported.platforms)


if __name__ == "__main__":
    main()
