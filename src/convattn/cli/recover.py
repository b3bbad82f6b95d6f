"""``convattn convert --to-convolution``: the convolution that an attention layer is."""

from pathlib import Path
from typing import Any

from convattn.cli.output import array_lines, described, finish
from convattn.cli.running import UsageError


def recover(
    weights: Path,
    target: Path,
    kernel_size: int | tuple[int, ...],
    image_size: int | tuple[int, ...] | None,
    layout: str,
    prefix: str | None,
    tolerance: float | None,
    json: Path | None,
) -> int:
    """Take the nearest kernel from a layer in our layout, and write it if it is near enough.

    Args:
        weights: A file in the layout ``ours``.
        target: The file to write.
        kernel_size: K, for all axes or for each.
        image_size: The pixels on which layer and convolution are compared.
        layout: ``hwio`` writes ``kernel``, ``oihw`` writes ``weight``; ``auto`` is ``hwio``.
        prefix: What the names begin with.
        tolerance: How far they may be apart; what rounding accounts for if ``None``.
        json: Where to write the numbers.

    Returns:
        0, or 1 if they are further apart, and then nothing is written.

    Raises:
        UsageError: If a file cannot be read, or no tolerance can be derived.
        ValueError: If the sizes or the file are refused.
    """
    if tolerance is not None and not 0 <= tolerance < float("inf"):
        raise UsageError(f"--tolerance got {tolerance}, but expected a number ≥ 0")
    try:
        numbers, content = _recover(
            weights, target, kernel_size, image_size, layout, prefix, tolerance
        )
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}") from error
    passed = bool(max(numbers["distance"], numbers["bias_distance"]) <= numbers["tolerance"])
    return finish(target, content, passed, json, numbers, _lines(numbers, passed))


def _recover(
    weights: Path,
    target: Path,
    kernel_size: int | tuple[int, ...],
    image_size: int | tuple[int, ...] | None,
    layout: str,
    prefix: str | None,
    tolerance: float | None,
) -> tuple[dict[str, Any], bytes]:
    """The numbers for the JSON file, and the content of the file of weights."""
    import jax
    import numpy

    import convattn
    from convattn.networks.weights.convolution_layout import arrange, find_convolution
    from convattn.networks.weights.files import (
        has_64_bits,
        parse_weights,
        read_weights,
        require_finite,
    )
    from convattn.networks.weights.fixed_size import smallest_image
    from convattn.networks.weights.stored_layer import encode, restore_one
    from convattn.networks.weights.verification import distance, rounding_tolerance
    from convattn.operators.shifts import per_axis

    file = read_weights(weights)
    if has_64_bits(file.arrays.values()):
        jax.config.update("jax_enable_x64", True)
    layer = restore_one(file)
    axes = len(layer.patch_size)
    taps = per_axis(kernel_size, axes, "kernel_size")
    sides = (
        smallest_image(taps, layer.patch_size, layer.stride, layer.dilation)
        if image_size is None
        else per_axis(image_size, axes, "image_size")
    )
    kernel, bias, residual = convattn.attention_to_conv(layer, taps, image_size=sides)
    require_finite(numpy.asarray(kernel), f"{weights}: the nearest kernel of its layer")
    gap = float(residual.bias_gap)
    if bias is not None:
        pixels = layer.bias.reshape(-1, bias.shape[0])  # type: ignore[union-attr]
        if bool((pixels == pixels[0]).all()):  # the mean of equal numbers may round
            bias, gap = pixels[0], 0.0
    order = "hwio" if layout == "auto" else layout
    head = f"{prefix}." if prefix else ""
    name = f"{head}{'kernel' if order == 'hwio' else 'weight'}"
    dtype = layer.dtype
    arrays = {name: arrange(numpy.asarray(kernel.astype(dtype)), order)}
    if bias is not None:
        arrays[f"{head}bias"] = numpy.asarray(bias.astype(layer.bias.dtype))  # type: ignore[union-attr]
    framework = {"format": "flax" if order == "hwio" else "pt"}
    content = encode(arrays, framework, target.suffix)
    stored = find_convolution(parse_weights(content, target.name), name)
    derived = tolerance is None
    if tolerance is None:
        try:
            tolerance = rounding_tolerance(layer, kernel, sides)
        except ValueError as error:
            raise UsageError(
                "no tolerance can be derived, so state one with --tolerance (1 takes the nearest "
                f"convolution, however far it is): {error}"
            ) from error
    largest = 0.0 if bias is None else float(abs(bias).max())
    numbers = {
        "heads": layer.heads,
        "kernel": list(stored.kernel.shape),
        "layout": order,
        "output": str(target),
        "image_size": list(sides),
        "arrays": described(arrays),
        "distance": distance(layer, stored.kernel, sides),
        "bias_distance": gap / largest if largest else gap,
        "sup_norm": float(residual.sup_norm),
        "bias_gap": gap,
        "linearised": residual.linearised,
        "tolerance": float(tolerance),
        "tolerance_is_derived": derived,
    }
    return numbers, content


def _lines(numbers: dict[str, Any], passed: bool) -> list[str]:
    word = "what rounding accounts for" if numbers["tolerance_is_derived"] else "--tolerance"
    lines = [
        f"{numbers['heads']} heads -> kernel {tuple(numbers['kernel'])}, written as "
        f"{numbers['layout']}",
        *array_lines(numbers["arrays"]),
        f"relative Frobenius distance of layer and convolution on images of "
        f"{tuple(numbers['image_size'])} pixels: {numbers['distance']:.3g}, bias "
        f"{numbers['bias_distance']:.3g}, {'within' if passed else 'MORE THAN'} {word}, "
        f"{numbers['tolerance']:.3g}",
        f"the outputs differ by at most {numbers['sup_norm']:.3g}·max|X| + "
        f"{numbers['bias_gap']:.3g}"
        + (", to first order at X = 0, for the layer has content" if numbers["linearised"] else ""),
    ]
    if not passed:
        lines.append(
            "the layer is no convolution of that size; try another --kernel-size, or take the "
            "nearest one with a larger --tolerance"
        )
    return lines
