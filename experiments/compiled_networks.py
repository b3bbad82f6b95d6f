"""Convolutional networks as vision transformers: sizes, differences and bounds, as a table.

The networks are plain JAX, with random parameters and statistics; the tests compile small ones.

    python experiments/compiled_networks.py
    python experiments/compiled_networks.py --run build/network --images 500 --dtype float32

`build/network` is the ResNet of `make network`.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from flax import nnx

from convattn.cli.output import print_lines, write_json
from convattn.compile import to_vision_transformer
from convattn.compile.transformer import CompiledTransformer

Network = Callable[[Any], Any]
ORDER = ("NHWC", "HWIO", "NHWC")
BATCH = 10  # images at once, in other libraries
HIGHEST = jax.lax.Precision.HIGHEST


def convolve(images: Any, kernel: Any, **options: Any) -> Any:
    """`lax.conv_general_dilated` of images NHWC, at stride 1 with SAME padding by default."""
    settings = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": ORDER}
    return jax.lax.conv_general_dilated(
        images, kernel.astype(images.dtype), precision=HIGHEST, **settings | options
    )


class Parameters:
    """Draws kernels, and batch norms with random statistics."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    def kernel(self, *shape: int) -> jax.Array:
        """He's initialisation."""
        return jnp.asarray(self.rng.normal(size=shape) * np.sqrt(2 / np.prod(shape[:-1])))

    def norm(self, channels: int) -> Network:
        """In evaluation mode, with random statistics, scale and bias."""
        mean, bias = 0.1 * self.rng.normal(size=(2, channels))
        variance, scale = self.rng.uniform(0.5, 1.5, (2, channels))

        def norm(x: Any) -> Any:
            dtype = x.dtype
            factor = jax.lax.rsqrt(jnp.asarray(variance, dtype) + 1e-5) * jnp.asarray(scale, dtype)
            return (x - jnp.asarray(mean, dtype)) * factor + jnp.asarray(bias, dtype)

        return norm


def residual(widths: tuple[int, ...] = (4, 6), blocks: int = 1, classes: int = 5) -> Network:
    """ResNet20 with three blocks and widths (16, 32, 64)."""
    draw, layers, channels = Parameters(), [], widths[0]
    stem, first = draw.kernel(3, 3, 3, channels), draw.norm(channels)
    for stage, width in enumerate(widths):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            shortcut = draw.kernel(1, 1, channels, width) if stride > 1 else None
            kernels = draw.kernel(3, 3, channels, width), draw.kernel(3, 3, width, width)
            layers.append((stride, *kernels, draw.norm(width), draw.norm(width), shortcut))
            channels = width
    head = draw.kernel(channels, classes)

    def network(x: Any) -> Any:
        x = jax.nn.relu(first(convolve((x - 0.5) / 0.25, stem)))
        for stride, one, other, norm, last, shortcut in layers:
            strides = (stride, stride)
            y = jax.nn.relu(norm(convolve(x, one, window_strides=strides)))
            y = last(convolve(y, other))
            x = x if shortcut is None else convolve(x, shortcut, window_strides=strides)
            x = jax.nn.relu(x + 0.3 * y)
        return x.mean((1, 2)) @ head.astype(x.dtype) + 0.1

    return network


def pooled(x: Any) -> Any:
    """VGG: max pooling, and a classifier of two layers on the flattened map."""
    draw = Parameters(1)
    for inputs, outputs in ((3, 4), (4, 5)):
        x = jax.nn.relu(convolve(x, draw.kernel(3, 3, inputs, outputs)))
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x.reshape(len(x), -1)
    x = jax.nn.relu(x @ draw.kernel(x.shape[1], 6).astype(x.dtype) + 0.1)
    return x @ draw.kernel(6, 3).astype(x.dtype) - 0.2


def depthwise(x: Any) -> Any:
    """MobileNetV1: a kernel for each channel, then one for each pixel; ReLU6."""
    draw = Parameters(2)
    x = jax.nn.relu6(convolve(x, draw.kernel(3, 3, 3, 4), window_strides=(2, 2)))
    for inputs, outputs, stride in ((4, 6, 1), (6, 8, 2)):
        own = {"feature_group_count": inputs, "window_strides": (stride, stride)}
        x = jax.nn.relu6(convolve(x, draw.kernel(3, 3, 1, inputs), **own))
        x = jax.nn.relu6(4 * convolve(x, draw.kernel(1, 1, inputs, outputs)))
    return x.mean((1, 2)) @ draw.kernel(8, 3).astype(x.dtype)


def asymmetric(x: Any) -> Any:
    """1 × 7 and 7 × 1 kernels, dilation, LeakyReLU and GELU."""
    draw = Parameters(3)
    x = jax.nn.leaky_relu(convolve(x, draw.kernel(1, 7, 3, 4)) + 1)
    x = jax.nn.gelu(convolve(x, draw.kernel(7, 1, 4, 4)), approximate=False)
    x = jax.nn.relu(convolve(x, draw.kernel(3, 3, 4, 4), rhs_dilation=(2, 2)))
    return x.mean((1, 2)) @ draw.kernel(4, 3).astype(x.dtype)


def wide(x: Any) -> Any:
    """A 5 × 5 kernel."""
    draw = Parameters(4)
    x = jax.nn.relu(convolve(x, draw.kernel(5, 5, 3, 4)))
    return x.mean((1, 2)) @ draw.kernel(4, 3).astype(x.dtype)


def bordered(x: Any) -> Any:
    """Circular and edge borders, maxima of what may be negative, and a global maximum."""
    draw = Parameters(5)
    around = ((0, 0), (1, 1), (1, 1), (0, 0))
    x = convolve(jnp.pad(x, around, mode="wrap"), draw.kernel(3, 3, 3, 4), padding="VALID")
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    x = convolve(jnp.pad(x, around, mode="edge"), draw.kernel(3, 3, 4, 4), padding="VALID")
    return jnp.max(x, (1, 2)) @ draw.kernel(4, 3).astype(x.dtype)


def strided(x: Any) -> Any:
    """Strides by slices, zero channels beside a shortcut, a scan, |x| and average pooling."""
    draw = Parameters(6)
    x = jnp.abs(convolve(x, draw.kernel(3, 3, 3, 4), padding=((1, 1), (0, 2))))
    kernels = jnp.stack([draw.kernel(3, 3, 4, 4) for _ in range(2)])
    x, _ = jax.lax.scan(lambda y, k: (jax.nn.relu(convolve(y, k)), None), x, kernels)
    shortcut = jnp.pad(x[:, ::2, ::2], ((0, 0), (0, 0), (0, 0), (1, 2)))
    x = jax.nn.relu(shortcut + convolve(x, draw.kernel(3, 3, 4, 7), window_strides=(2, 2)))
    x = jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    x = jnp.concatenate([x, jnp.clip(x, 0.1, 0.5)], -1)
    return x.mean((1, 2)) @ draw.kernel(14, 3).astype(x.dtype)


def channels_first(x: Any) -> Any:
    """As PyTorch lays out images and kernels."""
    draw = Parameters(7)
    order = ("NCHW", "OIHW", "NCHW")
    kernel = draw.kernel(3, 3, 3, 4).transpose(3, 2, 0, 1)
    x = jax.nn.relu(convolve(x, kernel, dimension_numbers=order, window_strides=(2, 2)))
    return x.mean((2, 3)) @ draw.kernel(4, 3).astype(x.dtype)


ROWS: dict[str, tuple[Network, int, int, dict[str, Any]]] = {  # sides, patches, options
    "ResNet20": (residual((16, 32, 64), 3, 10), 32, 1, {}),
    "ResNet20, patches of 2": (residual((16, 32, 64), 3, 10), 32, 2, {}),
    "VGG-like, max pooling": (pooled, 16, 1, {}),
    "VGG-like, patches of 4": (pooled, 16, 4, {}),
    "MobileNetV1-like, depthwise": (depthwise, 16, 1, {}),
    "dilated; 1 × 7 and 7 × 1; GELU": (asymmetric, 16, 1, {}),
    "5 × 5, 25 heads": (wide, 16, 1, {"num_heads": 25}),
    "5 × 5, 9 heads": (wide, 16, 1, {"num_heads": 9}),
    "circular and edge borders": (bordered, 16, 1, {}),
    "strides by slices, averages": (strided, 16, 1, {}),
}
COLUMNS = (
    "network",
    "dtype",
    "in",
    "blocks",
    "width",
    "heads",
    "parameters",
    "difference",
    "bound",
)


def trained(folder: Path, dtype: str) -> tuple[Network, np.ndarray]:
    """The ResNet of a run as a function of bytes, and its test images."""
    from convattn.cli.named_network import named_network

    network = named_network(str(folder), dtype=dtype)
    assert network.images is not None
    return network.function, network.images


def logits_in(library: str, compiled: CompiledTransformer, images: np.ndarray) -> np.ndarray:
    """The logits of a vision transformer, as another library computes them."""
    if library == "nnx":
        graph, state = nnx.split(compiled.to_nnx())
        run = jax.jit(lambda images: nnx.merge(graph, state)(images))
        batches = range(0, len(images), BATCH)
        return np.concatenate([run(images[start : start + BATCH]) for start in batches])
    torch = import_module("torch")
    if library == "timm":
        model = import_module("timm").models.VisionTransformer(**compiled.arguments)
    else:
        transformers = import_module("transformers")
        config = transformers.ViTConfig(**compiled.arguments)
        model = transformers.ViTForImageClassification(config)
    model = model.to(getattr(torch, compiled.dtype)).eval()
    tensors = {name: torch.from_numpy(array.copy()) for name, array in compiled.arrays.items()}
    model.load_state_dict(tensors, strict=True)
    parts = []
    with torch.no_grad():
        for start in range(0, len(images), BATCH):
            given = images[start : start + BATCH].transpose(0, 3, 1, 2).copy()
            found = model(torch.from_numpy(given))
            parts.append(np.asarray(getattr(found, "logits", found)))
    return np.concatenate(parts)


@dataclass(frozen=True)
class CompiledNetworks:
    """Compile each network, run both on images, and print a row for each dtype.

    Attributes:
        network: Only these, by the beginning of their names.
        run: The folder of a run of a ResNet, in place of them, on its own test images.
        into: What computes the vision transformer, a row each: JAX, convattn.nnx, timm or
            transformers.
        images: How many.
        patch_size: Of a run; the others have their own.
        dtype: Only this.
        json: A file for the numbers.
    """

    network: tuple[str, ...] = ()
    run: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    into: tuple[Literal["jax", "nnx", "timm", "transformers"], ...] = ("jax",)
    images: int = 20
    patch_size: int = 2
    dtype: Literal["float64", "float32"] | None = None
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None

    def __call__(self) -> int:
        """Print the table; 1 if a difference is outside its bound or a class is another."""
        jax.config.update("jax_enable_x64", True)
        print_lines([" | ".join((*COLUMNS, "bound/difference", "same class"))])
        rows = []
        for dtype in ("float64", "float32") if self.dtype is None else (self.dtype,):
            for name, function, images, patch, options in self._cases(dtype):
                for row in self._rows(function, images.astype(dtype), patch, options):
                    rows.append({"network": name, "dtype": dtype, **row})
                    cells = [
                        f"{x:.2g}" if isinstance(x, float) else str(x) for x in rows[-1].values()
                    ]
                    print_lines([" | ".join(cells[:-1])])
        write_json(self.json, {"schema": 1, "images": self.images, "rows": rows})
        return 0 if all(row["passed"] for row in rows) else 1

    def _cases(
        self, dtype: str
    ) -> Iterator[tuple[str, Network, np.ndarray, int, Mapping[str, Any]]]:
        if self.run is not None:
            function, images = trained(self.run, dtype)
            yield self.run.name, function, images[: self.images], self.patch_size, {}
            return
        for name, (function, side, patch, options) in ROWS.items():
            if not self.network or name.startswith(self.network):
                images = np.random.default_rng(0).random((self.images, side, side, 3))
                yield name, function, images, patch, options

    def _rows(
        self, function: Network, images: np.ndarray, patch: int, options: Mapping[str, Any]
    ) -> Iterator[dict[str, Any]]:
        kind = "transformers" if self.into == ("transformers",) else "timm"
        options = {"format": kind, "patch_size": patch, "dtype": images.dtype.name, **options}
        compiled = to_vision_transformer(function, images, **options)
        found = compiled.report
        assert found is not None
        for library in self.into:
            row = {
                "in": library,
                "blocks": found.size.blocks,
                "width": found.size.width,
                "heads": found.size.num_heads,
                "parameters": found.size.parameters,
                "difference": found.difference / found.largest,
                "bound": float(found.bound.total.max()) / found.largest,
                "ratio": found.ratio,
                "same_class": found.same_class,
                "passed": found.passed,
            }
            if library != "jax":
                expected = np.asarray(function(images), np.float64)
                logits = logits_in(library, compiled, images)
                apart, same = np.abs(logits - expected), logits.argmax(1) == expected.argmax(1)
                row |= {
                    "difference": float(apart.max()) / found.largest,
                    "ratio": float((found.bound.total / np.maximum(apart, 1e-300)).min()),
                    "same_class": int(same.sum()),
                    "passed": bool((apart <= found.bound.total).all() and same.all()),
                }
            yield row


if __name__ == "__main__":
    sys.exit(tyro.cli(CompiledNetworks)())
