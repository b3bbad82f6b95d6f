"""A process with eight CPU devices that trains the same batches on some of them; it prints JSON.

For each form of the model and each number of devices: the losses of all steps. Also how much the
losses move when the first parameters are moved by a relative 2⁻²⁰; and what became of the step on
all devices as one program for every platform.
"""

import json
import os
from dataclasses import replace
from typing import Any

MOVED = 2.0**-20
STEPS = 20
PLATFORMS = ("cpu", "cuda", "tpu")


def main() -> None:
    """Train in every way that the test asks for."""
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.export
    import jax.numpy as jnp
    import numpy as np
    from lab.training.tiny import Dense, Normalized, placed, set_up, settings, training_images

    from convattn_lab.training import step as steps_module
    from convattn_lab.training.program import compile_program
    from convattn_lab.training.step import make_step, order_of_epoch

    class ByGroups(Normalized):
        """Planted: BatchNorm by the statistics of each eighth of the batch."""

        def __call__(self, images: Any, *, training: bool = False, dropout_key: Any = None) -> Any:
            groups = images.reshape(8, -1, *images.shape[1:]).astype(self.norm.dtype)
            mean = groups.mean(axis=1, keepdims=True)
            var = groups.var(axis=1, keepdims=True)
            pooled = groups.mean(axis=(0, 1)), groups.var(axis=(0, 1))
            moved = (groups - mean) * jnp.sqrt(pooled[1] + 1e-5) / jnp.sqrt(var + 1e-5) + pooled[0]
            images = moved.reshape(images.shape)
            return super().__call__(images, training=training, dropout_key=dropout_key)

    def losses(dtype: str, devices: int, model: Any = Normalized, seeds: Any = (0,)) -> Any:
        """For each seed; with 0 the parameters are where they are, with others they are moved."""
        chosen = settings(
            batch_size=32, epochs=STEPS // 4, devices=devices, learning_rate=0.1, warmup=0.2
        )
        images = training_images(140)
        recipe, mesh, fresh, data, epoch = set_up(model(0, 0.25, jnp.dtype(dtype)), chosen, images)
        program = compile_program(recipe, mesh, fresh, data, epoch)
        actual: list[list[float]] = []
        for seed in seeds:
            rng = np.random.default_rng(seed)

            def move(leaf: Any, rng: Any = rng, by: float = MOVED if seed else 0.0) -> Any:
                return np.array(leaf) * (1 + by * rng.choice([-1, 1], leaf.shape)).astype(dtype)

            parameters = jax.tree.map(move, fresh.parameters)
            state = placed(replace(fresh, parameters=parameters), mesh)
            actual.append([])
            for _ in range(STEPS // epoch):
                state, of_epoch = program.advance(state, data, program.order(state), epoch)
                actual[-1] += of_epoch.tolist()
        return actual

    def weighted(logits: Any, labels: Any, smoothing: float) -> Any:
        """Planted: the mean of the means of two unequal shares."""
        actual = entropy(logits, labels, smoothing)
        half = len(labels) // 2
        return actual * jnp.where(jnp.arange(len(labels)) < 4, half / 4, half / (2 * half - 4))

    def exported() -> list[Any]:
        """Lowered for all platforms, and run on CPUs: for how many devices it is, and for which."""
        chosen = settings(batch_size=16, devices=8)
        recipe, _, state, data, steps = set_up(Dense(), chosen, training_images(64))
        leaves, structure = jax.tree.flatten((state, data, order_of_epoch(state, 64, steps)))
        step = make_step(recipe, steps)
        flat = jax.jit(
            lambda *leaves: jax.tree.leaves(step(*jax.tree.unflatten(structure, leaves)))
        )
        program = jax.export.export(flat, platforms=PLATFORMS)(*leaves)
        for one, other in zip(program.call(*leaves), flat(*leaves), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        return [program.nr_devices, *program.platforms]

    result: dict[str, Any] = {"exported": exported(), "devices": len(jax.devices())}
    result["float64"], result["float32"] = {}, {}
    result["float64"]["1"], *result["moved"] = losses("float64", 1, seeds=(0, 1, 2, 3))
    for dtype, count in (("float64", 2), ("float64", 8), ("float32", 1), ("float32", 8)):
        (result[dtype][str(count)],) = losses(dtype, count)
    (result["groups"],) = losses("float64", 1, ByGroups)
    entropy, steps_module.cross_entropy = steps_module.cross_entropy, weighted
    (result["weighted"],) = losses("float64", 1)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
