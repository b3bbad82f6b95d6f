"""``convattn convert``: turn a convolution's weights into those of an attention layer, or back.

The options of both ways stand here, and the way to a layer; `convattn.cli.recover` goes back, and
`convattn.cli.network` converts a whole network.
"""

import os.path
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from convattn.cli.output import array_lines, described, finish, require_outputs
from convattn.cli.running import (
    Flag,
    Json,
    Sizes,
    UsageError,
    given,
    option,
    require_seed,
    sizes_of,
)

SUFFIXES = (".safetensors", ".npz")
NOT_OF_TWO_LAYERS = {"--write", "--encoding", "--padding", "--head-dim"}
OF_THE_WAY_BACK = {
    *("WEIGHTS", "--layer", "--output", "--layout", "--image-size", "--to-convolution"),
    *("--kernel-size", "--tolerance", "--json"),
}


@dataclass(frozen=True)
class Convert:
    """Turn a convolution's weights into those of an attention layer, or back.

    A whole network: convattn convert network --help.

    What would be written is run against the convolution first, and only what lies within the
    derived bound is written. Exits 0 if it was, 1 if not, 2 on wrong use.

    Attributes:
        weights: The convolution's weights: .safetensors, .npz or .npy; with --to-convolution an
            attention layer's, as this command writes them.
        layer: The layer, such as 'stem.conv', or the kernel's own name; its bias is found beside
            it.
        output: Where to write, .safetensors or .npz; default: WEIGHTS.attention.safetensors (or
            .convolution.safetensors).
        layout: The kernel's axes: [K, K, in, out] (hwio: Flax, Keras) or [out, in, K, K] (oihw:
            PyTorch); auto tells them from the name, weight or kernel.
        bias: A file with the bias, [out].
        write: The layout to write: ours, flax (flax.nnx.MultiHeadAttention) or torch
            (torch.nn.MultiheadAttention), the latter two for one --image-size.
        image_size: Pixels of the image, for all axes or for each.
        patch_size: Pixels of a patch, for all axes or for each.
        encoding: The positional encoding.
        exact: Insist on an exact layer at finite parameters (bias and scalar only).
        no_exact: Take the limit construction, with one head fewer, rounded to one-hot.
        leak: The fraction of a head's attention that an exact layer spreads evenly.
        stride: For all axes or for each.
        dilation: For all axes or for each.
        padding: What stands outside the image: SAME (zeros, as PyTorch; half of the dilated kernel
            before, rounded down), SAME_XLA (as Flax, Keras), SAME_LOWER, VALID, CIRCULAR, REFLECT,
            EDGE, MEAN, CAUSAL; or so many zeros on every side, such as 1; or for each axis a number
            or a pair before,after, such as 0,1.
        groups: Groups of channels.
        head_dim: Split heads so that each has this dimension.
        layers: 2 writes two layers, of K and K + 1 heads in place of K² + 1.
        to_convolution: Go back: from attention to convolution.
        kernel_size: The size of the kernel to go back to, for all axes or for each.
        tolerance: Going back, the largest relative Frobenius distance at which to write; default:
            what rounding accounts for.
        seed: The seed of the random image.
    """

    weights: Annotated[Positional[Path | None], option("WEIGHTS")] = None
    layer: Annotated[str | None, option("NAME")] = None
    output: Annotated[Path | None, option("FILE", aliases=["-o"])] = None
    layout: Literal["auto", "hwio", "oihw"] = "auto"
    bias: Annotated[Path | None, option("FILE")] = None
    write: Literal["ours", "flax", "torch"] = "ours"
    image_size: Annotated[Sizes | None, option("H [W]")] = None
    patch_size: Annotated[Sizes, arg(metavar="P [P]")] = (1,)
    encoding: Literal["bias", "quadratic", "enumerated", "polygon", "rotary", "scalar"] = "bias"
    exact: Flag = False
    no_exact: Flag = False
    leak: float = 0.5
    stride: Annotated[Sizes, arg(metavar="S [S]")] = (1,)
    dilation: Annotated[Sizes, arg(metavar="D [D]")] = (1,)
    padding: Annotated[tuple[str, ...], arg(metavar="WORD [WORD]")] = ("SAME",)
    groups: int = 1
    head_dim: Annotated[int | None, option("N")] = None
    layers: Literal[1, 2] = 1
    to_convolution: Flag = False
    kernel_size: Annotated[Sizes | None, option("K [K]")] = None
    tolerance: Annotated[float | None, option("R")] = None
    seed: int = 0
    json: Json = None

    def __call__(self) -> int:
        """Convert in the way that the options say.

        Returns:
            0, or 1 if a result was further from the convolution than its bound, and then nothing
            is written.

        Raises:
            UsageError: If a file cannot be read or written, or the conversion is refused.
        """
        options = given(self)
        image, kernel = (
            None if value is None else sizes_of(value, name)
            for value, name in (
                (self.image_size, "--image-size"),
                (self.kernel_size, "--kernel-size"),
            )
        )
        require_seed(self.seed)
        if self.exact and self.no_exact:
            raise UsageError(
                "--exact and --no-exact exclude each other: give one of them or neither"
            )
        if self.weights is None:
            raise UsageError(
                "expected WEIGHTS, a file; a whole network is converted by convattn convert network"
            )
        if self.to_convolution:
            for name in (name for name in options if name not in OF_THE_WAY_BACK):
                raise UsageError(
                    f"{name} does not go with --to-convolution: the layer's file says it"
                )
            if kernel is None:
                raise UsageError("--to-convolution needs --kernel-size")
            content = "convolution"
        else:
            for name in (name for name in options if name in ("--kernel-size", "--tolerance")):
                raise UsageError(f"{name} goes with --to-convolution only")
            for name in (name for name in options if name in NOT_OF_TWO_LAYERS):
                if self.layers == 2:
                    raise UsageError(
                        f"{name} does not go with --layers 2: two layers are biases, zero-padded, "
                        "in our own layout"
                    )
            if self.write != "ours" and image is None:
                raise UsageError(
                    f"--write {self.write} needs --image-size: its scores are stored pair by pair"
                )
            content = "attention"
        target = self._target(content)
        try:
            if kernel is None:
                return self._to_attention(target, image)
            from convattn.cli.recover import recover

            return recover(
                self.weights,
                target,
                kernel,
                image,
                self.layout,
                self.layer,
                self.tolerance,
                self.json,
            )
        except ValueError as error:
            raise UsageError(str(error)) from error

    def _target(self, content: str) -> Path:
        """The file to write, refused before the work starts if it could not be written."""
        weights = self.weights or Path()
        if os.path.isdir(weights):  # which, unlike Path.is_dir, never raises
            raise UsageError(f"cannot read {weights}: it is a directory, but expected a file")
        target = self.output or weights.with_name(f"{weights.stem}.{content}{SUFFIXES[0]}")
        if target.suffix not in SUFFIXES:
            raise UsageError(
                f"--output got {target}, but expected a name in {' or '.join(SUFFIXES)}"
            )
        require_outputs(
            {"--output": target, "--json": self.json}, {"WEIGHTS": weights, "--bias": self.bias}
        )
        return target

    def _to_attention(self, target: Path, image_size: int | Sizes | None) -> int:
        """Convert a kernel, run what would be written against the convolution, and write it."""
        arguments: dict[str, Any] = {
            "patch_size": sizes_of(self.patch_size, "--patch-size"),
            "exact": True if self.exact else False if self.no_exact else None,
            "leak": self.leak,
            "stride": sizes_of(self.stride, "--stride"),
            "dilation": sizes_of(self.dilation, "--dilation"),
            "groups": self.groups,
        }
        if self.layers == 1:
            arguments |= {
                "encoding": self.encoding,
                "padding": padding_of(self.padding),
                "head_dim": self.head_dim,
            }
        else:
            arguments["exact"] = not self.no_exact
        try:
            found = self._find()
        except OSError as error:
            raise UsageError(f"cannot read {error.filename}: {error.strerror}") from error
        import jax

        from convattn.networks.weights.converted_layer import convert_to_two_layers, convert_weights
        from convattn.networks.weights.files import has_64_bits

        if has_64_bits(part for part in (found.kernel, found.bias) if part is not None):
            jax.config.update("jax_enable_x64", True)
        common: dict[str, Any] = {"image_size": image_size, "seed": self.seed, "name": target.name}
        if self.layers == 2:
            converted = convert_to_two_layers(found.kernel, found.bias, arguments, **common)
        else:
            common["write"] = self.write
            converted = convert_weights(found.kernel, found.bias, arguments, **common)
        numbers = {
            "heads": converted.heads,
            "kernel": list(found.kernel.shape),
            "kernel_name": found.kernel_name,
            "bias_name": found.bias_name,
            "layout": found.layout,
            "layout_told_by": found.told_by,
            "parts": list(found.parts),
            "write": self.write,
            "output": str(target),
            "arrays": described(converted.arrays),
            "arguments": arguments,
            "comparisons": [asdict(comparison) for comparison in converted.comparisons],
        }
        lines = [
            f"kernel {found.kernel_name or ''} {tuple(found.kernel.shape)}, stored as "
            f"{found.layout} ({found.told_by}), "
            + (f"computed from {' and '.join(found.parts)}, " if found.parts else "")
            + f"bias {found.bias_name or 'none'} -> "
            f"{converted.heads} heads" + (" in two layers" if self.layers == 2 else ""),
            *array_lines(numbers["arrays"]),
            *(_comparison_line(comparison) for comparison in numbers["comparisons"]),
        ]
        passed = all(comparison.passed for comparison in converted.comparisons)
        return finish(target, converted.content, passed, self.json, numbers, lines)

    def _find(self) -> Any:
        """The kernel and the bias."""
        from convattn.networks.weights.convolution_layout import find_convolution
        from convattn.networks.weights.files import read_weights

        path = self.weights or Path()
        found = find_convolution(
            read_weights(path), self.layer, self.layout, path.stem, self.bias is None
        )
        if self.bias is None:
            return found
        file = read_weights(self.bias)
        if len(file.arrays) != 1:
            raise UsageError(f"--bias got {self.bias}, but expected one array: {file.listing()}")
        return replace(found, bias=file[next(iter(file.arrays))], bias_name=str(self.bias))


def padding_of(words: tuple[str, ...]) -> str | int | tuple[int | tuple[int, ...], ...]:
    """A padding as `conv` takes it.

    >>> padding_of(("EDGE",)), padding_of(("1",)), padding_of(("0,1", "2"))
    ('EDGE', 1, ((0, 1), 2))

    Raises:
        UsageError: For what is neither.
    """
    if len(words) == 1 and words[0].replace("_", "").isalpha():
        return words[0]
    try:
        pairs = [tuple(int(number) for number in word.split(",")) for word in words]
    except ValueError:
        raise UsageError(
            f"--padding got {' '.join(words)!r}, but expected a name such as SAME, numbers such as "
            "1, or pairs such as 0,1"
        ) from None
    sides = tuple(pair[0] if len(pair) == 1 else pair for pair in pairs)
    return sides[0] if len(sides) == 1 and isinstance(sides[0], int) else sides


def _comparison_line(comparison: dict[str, Any]) -> str:
    """What one run against the convolution showed."""
    run = f"{comparison['route']} against conv on an image of shape {comparison['image']}"
    if comparison["equality"]:
        verdict = "equal" if comparison["passed"] else "NOT EQUAL"
    else:
        verdict = "within" if comparison["passed"] else "NOT WITHIN"
        verdict += f" the derived bound {comparison['bound']:.3g}"
    return (
        f"{run} in {comparison['dtype']}: largest difference {comparison['error']:.3g}, {verdict} "
        f"(largest value {comparison['largest']:.3g})"
    )
