"""A process with eight CPU devices that shards images and kernels of a function over them.

It prints the largest difference from the function on one device, and the derived bound.
"""

import json
import os


def main() -> None:
    """Compare the sharded attention, its gradient and that of `shard_map`."""
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    from networks.transformation.convolutions import convolve, integers

    from convattn import attention_of, with_attention

    mesh = jax.make_mesh(
        (4, 2), ("images", "channels"), axis_types=(jax.sharding.AxisType.Auto,) * 2
    )
    images, kernel = integers(8, 6, 5, 4) / 4, integers(3, 3, 4, 6, seed=1) / 16

    def function(images: jax.Array, kernel: jax.Array) -> jax.Array:
        return jnp.tanh(convolve(images, kernel)).sum((1, 2))

    report = attention_of(function, images, kernel).report
    expected = function(images, kernel)
    placed = [
        jax.device_put(array, jax.sharding.NamedSharding(mesh, spec))
        for array, spec in (
            (images, jax.P("images")),
            (kernel, jax.P(None, None, None, "channels")),
        )
    ]
    attended = jax.jit(with_attention(function, strict=True))
    sharded = attended(*placed)
    spec = jax.P("images")
    mapped = jax.shard_map(
        lambda part: function(part, kernel), mesh=mesh, in_specs=spec, out_specs=spec
    )
    by_map = jax.jit(with_attention(mapped, strict=True))(placed[0])
    slopes = [
        jax.grad(lambda images, of=of: of(images, kernel).sum())(images)
        for of in (attended, function)
    ]
    print(
        json.dumps(
            {
                "devices": len(sharded.sharding.device_set),
                "bound": report.bound,
                "differences": [float(abs(each - expected).max()) for each in (sharded, by_map)],
                "gradient": float(abs(slopes[0] - slopes[1]).max() / abs(slopes[1]).max()),
            }
        )
    )


if __name__ == "__main__":
    main()
