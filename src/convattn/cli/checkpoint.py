"""``convattn convert --network FILE``: a network of torchvision or timm as attention layers."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from convattn.cli.convert import finish
from convattn.cli.output import print_lines, require_outputs
from convattn.cli.running import Sizes, UsageError, sizes_of
from convattn.files import write_file

SIDE = 224  # pixels of the noise that a network is checked on without images
WIDE = 8  # bytes of a number in float64
SAME_TENSORS = {  # other networks whose tensors have the same names and shapes
    "resnet18": "timm's resnetblur18",
    "resnet50": "timm's resnetaa50 and resnetblur50",
}


def convert_checkpoint(
    file: Path,
    architecture: str | None,
    output: Path | None,
    images: Path | None,
    expected: Path | None,
    image_size: Sizes | None,
    stablehlo: Path | None,
    json: Path | None,
    *,
    exact: bool,
    leak: float,
    head_dim: int | None,
    seed: int,
) -> int:
    """Read a state dict, fold its batch norms, convert, check, and write it.

    Args:
        file: Of the state dict.
        architecture: Its name in `ARCHITECTURES`.
        output: The file to write; FILE.attention.safetensors if ``None``.
        images: A .npy file of normalised images `[batch, height, width, 3]`; noise if ``None``.
        expected: A .npy file of the logits `[batch, classes]` that the network has for them where
            it comes from.
        image_size: Pixels of the noise.
        stablehlo: A file for the network as StableHLO, at the shape of the images.
        json: Where to write the numbers.
        exact, leak, head_dim: As for `to_attention`.
        seed: Of the noise.

    Returns:
        0, or 1 if a layer was further off than its bound, a logit than √ε times the largest, ε of
        the dtype, or if an image changed its class, and then nothing is written; the same for the
        expected logits. The bound is derived for each layer from the folded network; √ε is no
        bound but what a wrong fold, or another network, exceeds.

    Raises:
        UsageError: If a file cannot be read or written, or does not fit the architecture.
    """
    name = known_architecture(file, architecture)
    if images is not None and image_size is not None:
        raise UsageError("--image-size goes with noise; the images of --images have their own size")
    if expected is not None and images is None:
        raise UsageError("--expected needs --images FILE, the images that the logits are of")
    target = output or file.with_name(f"{file.stem}.attention.safetensors")
    if target.suffix != ".safetensors":
        raise UsageError(f"--output got {target}, but expected a name in .safetensors")
    require_outputs(
        {"--output": target, "--stablehlo": stablehlo, "--json": json},
        {"--network": file, "--images": images, "--expected": expected},
    )
    from convattn.networks.weights.names import common_prefix
    from convattn.nnx.checkpoint import from_state_dict
    from convattn.nnx.network_file import export_network, model_bytes

    started = time.monotonic()
    try:
        arrays = read_state_dict(file)
        seen = read_images(images) if images else noise(image_size or (SIDE,), seed)
        try:
            model = from_state_dict(arrays, name)
        except ValueError as error:
            raise UsageError(f"{file}: {error}") from error
        prefix = common_prefix(arrays)
        print_lines(
            [
                f"{file} as {name}: kernels [out, in, K, K]; strides and paddings are "
                f"{name.partition('/')[0]}'s; {told(images, seen)}",
                *([f"every name begins with {prefix!r}, which is left out"] if prefix else []),
                *([] if expected is not None else [unchecked(name)]),
            ]
        )
        logits = None if expected is None else read_logits(expected, len(seen))
        numbers, attention = converted(
            model, seen, logits, exact=exact, leak=leak, head_dim=head_dim
        )
        content = model_bytes(attention, name, numbers["classes"], exact=exact, head_dim=head_dim)
        wanted = stablehlo is not None and numbers["passed"]
        exported = export_network(attention, seen.shape, numbers["dtype"]) if wanted else None
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    numbers |= {
        "network": str(file),
        "architecture": name,
        "output": str(target),
        "stablehlo": None if exported is None else str(stablehlo),
        "seconds": round(time.monotonic() - started, 1),
    }
    code = finish(target, content, numbers["passed"], json, numbers, lines(numbers))
    if stablehlo is not None and exported is not None:
        write_file(stablehlo, exported)
        print_lines([f"written to {stablehlo}, as StableHLO for images {seen.shape}"])
    return code


def known_architecture(file: Path, architecture: str | None) -> str:
    """The name, if there is one.

    Raises:
        UsageError: With the names that are near.
    """
    from convattn.nnx.architectures import ARCHITECTURES

    if architecture in ARCHITECTURES:
        return architecture
    own = (architecture or file.stem).rpartition("/")[2]
    near = [name for name in ARCHITECTURES if name.rpartition("/")[2] == own]
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    found = "none was given" if architecture is None else f"got {architecture}"
    raise UsageError(
        f"--network got the file {file}, which needs --architecture NAME, but {found}{hint}; "
        f"expected one of {', '.join(ARCHITECTURES)}; another network is converted in its own "
        "nnx.Module by convattn.nnx.to_attention (docs/networks.md)"
    )


def read_state_dict(file: Path) -> dict[str, Any]:
    """The arrays of a file; float64 turns 64-bit types on, halves are widened to float32.

    Raises:
        ValueError: For what is no such file. `OSError` if it cannot be read.
    """
    import jax
    import numpy as np

    from convattn.networks.weights.files import read_weights

    arrays = read_weights(file).tensors()
    floats = [array for array in arrays.values() if array.dtype.kind not in "iu"]
    if any(array.dtype.itemsize == WIDE for array in floats):
        jax.config.update("jax_enable_x64", True)
    return {
        name: array.astype(np.float32) if array.dtype.itemsize < WIDE else array
        for name, array in arrays.items()
    }


def read_images(path: Path) -> Any:
    """Images from a file.

    Raises:
        ValueError: For anything but floats `[batch, height, width, 3]`. `OSError` as above.
    """

    from convattn.networks.weights.files import read_weights

    file = read_weights(path)
    if len(file.arrays) != 1:
        raise ValueError(f"--images got {path}, but expected one array: {file.listing()}")
    images = file[next(iter(file.arrays))]
    if images.ndim != 4 or images.shape[-1] != 3 or not images.size:
        hint = "; add the batch axis" if images.ndim == 3 else ""
        if images.ndim == 4 and images.shape[1] == 3:
            hint = "; these look like [batch, 3, height, width]: transpose(0, 2, 3, 1)"
        raise ValueError(
            f"--images got {path} of shape {images.shape}, but expected [batch, height, width, 3]"
            + hint
        )
    if images.dtype.kind != "f":
        raise ValueError(
            f"--images got {path} of {images.dtype}, but expected floats, normalised as in the "
            "network's training"
        )
    return images


def read_logits(path: Path, images: int) -> Any:
    """Logits from a file.

    Raises:
        ValueError: For anything but floats `[images, classes]`. `OSError` as above.
    """
    from convattn.networks.weights.files import read_weights

    file = read_weights(path)
    arrays = file.tensors()
    logits = next(iter(arrays.values()), None)
    if len(arrays) != 1 or logits is None or logits.ndim != 2 or logits.dtype.kind in "iu":
        raise ValueError(
            f"--expected got {path}, but expected one array of floats [images, classes], the "
            f"logits of the images: {file.listing()}"
        )
    if len(logits) != images:
        raise ValueError(
            f"--expected got {path} of shape {logits.shape}, but expected {images} rows, one for "
            "each of --images"
        )
    return logits


def unchecked(architecture: str) -> str:
    """What reading by names does not see."""
    same = SAME_TENSORS.get(architecture.rpartition("/")[2])
    return (
        "only names and shapes were checked: another network with the same tensors"
        + (f" ({same})" if same else "")
        + " would read the same; --images FILE --expected LOGITS.npy compares with its own logits"
    )


def noise(image_size: Sizes, seed: int) -> Any:
    """One image of standard normal noise."""
    import numpy as np

    sizes = sizes_of(image_size, "--image-size")
    sides = (sizes, sizes) if isinstance(sizes, int) else sizes
    return np.random.default_rng(seed).normal(size=(1, *sides, 3))


def told(images: Path | None, seen: Any) -> str:
    """Which images the network is checked on."""
    size = " x ".join(map(str, seen.shape[1:3]))
    if images is None:
        return f"checked on one image of noise, {size} pixels; --images takes your own"
    count = "one image" if len(seen) == 1 else f"{len(seen)} images"
    return f"checked on {count} of {size} pixels from {images}"


def converted(
    model: Any, images: Any, expected: Any = None, **options: Any
) -> tuple[dict[str, Any], Any]:
    """The numbers, and the model of attention layers.

    Raises:
        ValueError: For logits that are not finite, and expected ones of other classes.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    from convattn.nnx.network_file import fold_batch_norms
    from convattn.nnx.surgery import output_difference, to_attention

    seen = jnp.asarray(images, jax.tree.leaves(model)[0].dtype)
    attention, report = to_attention(fold_batch_norms(model), seen, **options)
    logits = jax.jit(lambda images: model(images))(seen)
    outputs = output_difference(logits, attention(seen))
    assert outputs is not None  # nothing is traced here
    difference, largest, same = outputs
    ordered = jnp.sort(logits, axis=-1)
    layers = {layer.path: asdict(layer) for layer in report.layers}
    if not np.isfinite(
        [difference, largest, *(layer["difference"] or 0 for layer in layers.values())]
    ).all():
        raise ValueError(
            f"the logits reach {largest} and differ by {difference}, but expected finite numbers; "
            f"the weights overflow {seen.dtype.name} on these images: use others, or float64"
        )
    tolerance = float(jnp.finfo(seen.dtype).eps) ** 0.5 * largest
    comparison = None if expected is None else compared(np.asarray(logits), expected)
    numbers = {
        "dtype": seen.dtype.name,
        "images": list(seen.shape),
        "classes": logits.shape[-1],
        **options,
        "layers": layers,
        "difference": difference,
        "largest": largest,
        "same_class": same,
        "smallest_margin": float((ordered[:, -1] - ordered[:, -2]).min()),
        "tolerance": tolerance,
        "expected": comparison,
        "passed": same
        and (comparison is None or comparison["passed"])
        and difference <= tolerance
        and all(share(layer) <= 1 for layer in layers.values()),
    }
    return numbers, attention


def compared(logits: Any, expected: Any) -> dict[str, Any]:
    """The logits of the network as it was read against those that it should have.

    The tolerance is √ε times the largest, ε of the coarser dtype.

    Raises:
        ValueError: For another number of classes.

    >>> import numpy as np
    >>> compared(np.array([[1.0, 2.0]]), np.array([[1.0, 2.5]]))["passed"]
    False
    """
    import jax.numpy as jnp
    import numpy as np

    if logits.shape != expected.shape:
        raise ValueError(
            f"--expected has shape {expected.shape}, but expected {logits.shape}, [images, classes]"
        )
    difference = np.abs(logits.astype(np.float64) - expected.astype(np.float64)).max()
    largest = np.abs(logits).max()
    coarser = max(float(jnp.finfo(array.dtype).eps) for array in (logits, expected))
    tolerance = coarser**0.5 * float(largest)
    return {
        "difference": float(difference),
        "largest": float(largest),
        "tolerance": tolerance,
        "passed": bool(difference <= tolerance),
    }


def lines(numbers: dict[str, Any]) -> list[str]:
    """What is printed of the numbers."""
    layers = numbers["layers"]
    bounded = {path: layer for path, layer in layers.items() if layer["bound"] is not None}
    worst = max(bounded, key=lambda path: share(bounded[path]), default=None)
    heads = sorted({layer["heads"] for layer in layers.values()})
    found = [
        f"{len(layers)} convolutions -> attention layers of {' and '.join(map(str, heads))} heads, "
        + (f"leak {numbers['leak']:g}" if numbers["exact"] else "one-hot, in the limit"),
        f"{numbers['dtype']}, logits against the network as it was read: largest difference "
        f"{numbers['difference']:.3g} of {numbers['largest']:.3g} "
        f"({'at most' if numbers['difference'] <= numbers['tolerance'] else 'MORE THAN'} "
        f"{numbers['tolerance']:.2g}), "
        + ("the same classes" if numbers["same_class"] else "OTHER CLASSES")
        + f" (smallest margin {numbers['smallest_margin']:.3g})",
    ]
    if numbers["expected"] is not None:
        comparison = numbers["expected"]
        found.append(
            f"the network as it was read against --expected: largest difference "
            f"{comparison['difference']:.3g} of {comparison['largest']:.3g} "
            + (
                f"(at most {comparison['tolerance']:.2g})"
                if comparison["passed"]
                else f"(MORE THAN {comparison['tolerance']:.2g}): ANOTHER NETWORK with the same "
                "tensors, or other images"
            )
        )
    if worst is not None:
        most = share(bounded[worst])
        found.append(
            f"each of {len(bounded)} layers is within its derived bound: at most {most:.2g} of it "
            f"({worst})"
            if most <= 1
            else f"{worst} is NOT WITHIN its derived bound: {most:.3g} times it"
        )
    if len(bounded) < len(layers):
        found.append(f"{len(layers) - len(bounded)} of {len(layers)} layers have no derived bound")
    return [*found, f"in {numbers['seconds']} s"]


def share(layer: dict[str, Any]) -> float:
    """The difference of a layer in units of its bound; 0 where no bound is derived.

    >>> share({"difference": 1.0, "bound": 4.0}), share({"difference": None, "bound": None})
    (0.25, 0.0)
    """
    if layer["bound"] is None:
        return 0.0
    return layer["difference"] / layer["bound"] if layer["difference"] else 0.0
