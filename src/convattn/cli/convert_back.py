"""``convattn convert back``: the convolution that an attention layer is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional

from convattn.cli.output import array_lines, described, finish, weights_target
from convattn.cli.running import Json, Sizes, UsageError, cannot, option, sizes_of

NAMED = 1e-6  # a part of the kernel from which on the uniform part is named
TELLING = 0.1  # of the distance that rounding may account for: above, it tells little


@dataclass(frozen=True)
class ConvertBack:
    """Turn the weights of an attention layer into those of the convolution that it is.

    The nearest kernel is written if it is near enough, on images of all sizes; where heads may look
    elsewhere on larger images than can be judged, the output says up to which size it holds. Exits
    0 if it was written, 1 if not, 2 on wrong use.

    Attributes:
        weights: An attention layer's, as convattn convert kernel writes them.
        kernel_size: The size of the kernel, for all axes or for each.
        layer: What the names of kernel and bias begin with, such as 'stem.conv'.
        output: Where to write, .safetensors or .npz; default: WEIGHTS.convolution.safetensors.
        layout: The kernel's axes: [K, K, in, out] (hwio: Flax, Keras), [out, in, K, K] (oihw:
            PyTorch) or [out, K, K, in] (ohwi: MLX); auto is hwio.
        image_size: Pixels of the image on which both are compared, for all axes or for each.
        tolerance: The largest relative Frobenius distance at which to write; default: what rounding
            accounts for.
    """

    weights: Annotated[Positional[Path], option("WEIGHTS")]
    kernel_size: Annotated[Sizes, option("K [K]")]
    layer: Annotated[str | None, option("NAME")] = None
    output: Annotated[Path | None, option("FILE", aliases=["-o"])] = None
    layout: Literal["auto", "hwio", "oihw", "ohwi"] = "auto"
    image_size: Annotated[Sizes | None, option("H [W]")] = None
    tolerance: Annotated[float | None, option("R")] = None
    json: Json = None

    def __call__(self) -> int:
        """Take the nearest kernel, and write it if it is near enough.

        Returns:
            0, or 1 if layer and convolution are further apart, and then nothing is written.

        Raises:
            UsageError: If a file cannot be read or written, no tolerance can be derived, or the
                sizes or the file are refused.
        """
        kernel_size = sizes_of(self.kernel_size, "--kernel-size")
        image_size = None if self.image_size is None else sizes_of(self.image_size, "--image-size")
        if self.tolerance is not None and not 0 <= self.tolerance < float("inf"):
            raise UsageError(f"--tolerance got {self.tolerance}, but expected a number ≥ 0")
        target = weights_target(self.weights, self.output, "convolution", {}, self.json)
        try:
            numbers, content = self._recover(target, kernel_size, image_size)
        except OSError as error:
            raise UsageError(cannot("read", error)) from error
        except ValueError as error:
            raise UsageError(str(error)) from error
        passed = bool(max(numbers["distance"], numbers["bias_distance"]) <= numbers["tolerance"])
        passed &= numbers["large_distance"] <= _allowed(numbers, "large_rounding")
        passed &= numbers["far_distance"] <= _allowed(numbers, "far_rounding")
        passed &= numbers["uniform"] <= max(numbers["tolerance"], numbers["uniform_rounding"])
        return finish(target, content, passed, self.json, numbers, _lines(numbers, passed))

    def _recover(
        self,
        target: Path,
        kernel_size: int | tuple[int, ...],
        image_size: int | tuple[int, ...] | None,
    ) -> tuple[dict[str, Any], bytes]:
        """The numbers for the JSON file, and the content of the file of weights."""
        import jax
        import numpy

        import convattn
        from convattn.networks.far_shifts import FarShifts, beyond_image, size_within
        from convattn.networks.recovered_kernel import recovery_size, uniform_part
        from convattn.networks.weights.convolution_layout import (
            FRAMEWORKS,
            arrange,
            find_convolution,
        )
        from convattn.networks.weights.files import (
            has_64_bits,
            parse_weights,
            read_weights,
            require_finite,
        )
        from convattn.networks.weights.fixed_size import smallest_image
        from convattn.networks.weights.stored_layer import encode, restore_one
        from convattn.networks.weights.verification import (
            LargeImage,
            on_large_image,
            rounding_tolerance,
            stored_residual,
        )
        from convattn.operators.integers import per_axis

        file = read_weights(self.weights)
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
        kernel, bias, _ = convattn.attention_to_conv(layer, taps, image_size=sides)
        require_finite(numpy.asarray(kernel), f"{self.weights}: the nearest kernel of its layer")
        if bias is not None:
            pixels = layer.bias.reshape(-1, bias.shape[0])  # type: ignore[union-attr]
            if bool((pixels == pixels[0]).all()):  # the mean of equal numbers may round
                bias = pixels[0]
        order = "hwio" if self.layout == "auto" else self.layout
        head = f"{self.layer}." if self.layer else ""
        name = f"{head}{'kernel' if order == 'hwio' else 'weight'}"
        dtype = layer.dtype
        arrays = {name: arrange(numpy.asarray(kernel.astype(dtype)), order)}
        if bias is not None:
            arrays[f"{head}bias"] = numpy.asarray(bias.astype(layer.bias.dtype))  # type: ignore[union-attr]
        framework = {"format": next(name for name, each in FRAMEWORKS.items() if each == order)}
        content = encode(arrays, framework, target.suffix)
        stored = find_convolution(parse_weights(content, target.name), name)
        tolerance = self.tolerance
        if tolerance is None:
            try:
                tolerance = rounding_tolerance(layer, kernel, sides)
            except ValueError as error:
                raise UsageError(
                    "no tolerance can be derived, so state one with --tolerance (1 takes the "
                    f"nearest convolution, however far it is): {error}"
                ) from error
            if tolerance > TELLING:
                raise UsageError(
                    f"rounding alone accounts for a distance of {tolerance:.3g} from a "
                    f"convolution, but expected at most {TELLING}: the layer leaks too much for "
                    "its dtype; state one with --tolerance"
                )
        residual = stored_residual(layer, stored.kernel, stored.bias, sides)
        large, uniform, rounded = recovery_size(layer, taps, None), 0.0, 0.0
        larger, far = LargeImage(0.0, 0.0), FarShifts(0.0, 0.0, tuple(sides))
        if layer.content is None:
            uniform, rounded = map(float, uniform_part(layer, kernel, large))
            larger = on_large_image(layer, stored.kernel, large)
            far = beyond_image(layer, large)
            if limit := size_within(layer, kernel, large, float(tolerance)):
                known = far.largest_image or limit
                far = far._replace(largest_image=tuple(map(min, known, limit)))
        gap, largest = float(residual.bias_gap), 0.0 if bias is None else float(abs(bias).max())
        numbers = {
            "heads": layer.heads,
            "layer": repr(layer),
            "kernel": list(stored.kernel.shape),
            "layout": order,
            "output": str(target),
            "image_size": list(sides),
            "arrays": described(arrays),
            "padding": [list(pair) for pair in residual.padding],
            "distance": float(residual.relative_frobenius),
            "bias_distance": gap / largest if largest else gap,
            "sup_norm": float(residual.sup_norm),
            "bias_gap": gap,
            "linearised": residual.linearised,
            "uniform": uniform,
            "uniform_rounding": rounded,
            "large_image_size": list(large),
            "large_distance": larger.distance,
            "large_rounding": larger.rounding,
            "far_distance": far.distance,
            "far_rounding": far.rounding,
            "judged_up_to": None if far.largest_image is None else list(far.largest_image),
            "tolerance": float(tolerance),
            "tolerance_is_derived": self.tolerance is None,
        }
        return numbers, content


def _allowed(numbers: dict[str, Any], rounding_of: str) -> float:
    rounding = numbers[rounding_of] if numbers["tolerance_is_derived"] else 0.0
    return float(numbers["tolerance"] + rounding)


def _lines(numbers: dict[str, Any], passed: bool) -> list[str]:
    word = "what rounding accounts for" if numbers["tolerance_is_derived"] else "--tolerance"
    near = max(numbers["distance"], numbers["bias_distance"]) <= numbers["tolerance"]
    lines = [
        f"{numbers['heads']} heads -> kernel {tuple(numbers['kernel'])}, written as "
        f"{numbers['layout']}, of {numbers['layer']}",
        f"its padding is {numbers['padding']}, pixels (before, after) on each axis",
        *array_lines(numbers["arrays"]),
        f"relative Frobenius distance of layer and convolution on images of "
        f"{tuple(numbers['image_size'])} pixels: {numbers['distance']:.3g}, bias "
        f"{numbers['bias_distance']:.3g}, {'within' if near else 'MORE THAN'} {word}, "
        f"{numbers['tolerance']:.3g}",
        f"the outputs differ by at most {numbers['sup_norm']:.3g}·max|X| + "
        f"{numbers['bias_gap']:.3g}"
        + (", to first order at X = 0, for the layer has content" if numbers["linearised"] else ""),
    ]
    if numbers["large_distance"] > _allowed(numbers, "large_rounding"):
        lines.append(
            f"the outputs of an image of {tuple(numbers['large_image_size'])} pixels are at a "
            f"relative distance of {numbers['large_distance']:.3g}: heads look beyond the kernel"
        )
    if numbers["far_distance"] > _allowed(numbers, "far_rounding"):
        lines.append(
            f"on larger images than {tuple(numbers['large_image_size'])} pixels heads look where a "
            f"convolution does not: {numbers['far_distance']:.3g} of the layer stands there"
        )
    if numbers["judged_up_to"] is not None and passed:
        lines.append(
            f"judged on images of up to {tuple(numbers['judged_up_to'])} pixels alone: on larger "
            "ones the layer may be no convolution"
        )
    allowed = max(numbers["tolerance"], numbers["uniform_rounding"])
    if numbers["uniform"] > min(NAMED, allowed):
        lines.append(
            f"of the mean of all pixels, which no convolution reads, every output has "
            f"{numbers['uniform']:.2g} of the kernel on images of "
            f"{tuple(numbers['large_image_size'])} pixels; it grows with their number"
        )
    if not passed:
        lines.append(
            "the layer is no convolution of that size; try another --kernel-size, or take the "
            "nearest one with a larger --tolerance"
        )
    return lines
