"""``convattn convert kernel``: a convolution's weights as those of an attention layer."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from convattn.cli.output import array_lines, described, finish, weights_target
from convattn.cli.running import (
    Flag,
    Json,
    Sizes,
    UsageError,
    cannot,
    changed_options,
    option,
    require_seed,
    sizes_of,
)

NOT_OF_TWO_LAYERS = {"--format", "--encoding", "--head-dim", "--num-heads", "--border", "--causal"}


@dataclass(frozen=True)
class ConvertKernel:
    """Turn a convolution's weights into those of an attention layer.

    What would be written is run against the convolution first, and only what lies within the
    derived bound is written. Exits 0 if it was, 1 if not, 2 on wrong use.

    Attributes:
        weights: The convolution's weights: .safetensors, .npz or .npy.
        layer: The layer, such as 'stem.conv', or the kernel's own name; its bias is found beside
            it.
        output: Where to write, .safetensors or .npz; default: WEIGHTS.attention.safetensors.
        layout: The kernel's axes: [K, K, in, out] (hwio: Flax, Keras), [out, in, K, K] (oihw:
            PyTorch) or [out, K, K, in] (ohwi: MLX); auto tells them from the name, weight or
            kernel, and the file's metadata.
        ignore: Arrays or modules beside the kernel that do not change it.
        bias: A file with the bias, [out].
        format: The layout to write: convattn, flax (flax.nnx.MultiHeadAttention) or torch
            (torch.nn.MultiheadAttention), the latter two for one --image-size.
        image_size: Pixels of the image, for all axes or for each.
        patch_size: Pixels of a patch, for all axes or for each.
        encoding: The positional encoding.
        form: exact, at finite parameters (bias and scalar only), or limit, with one head fewer,
            rounded to one-hot; default: exact where the encoding has that form.
        uniform_weight: The fraction of a head's attention that an exact layer spreads evenly.
        stride: For all axes or for each.
        dilation: For all axes or for each.
        padding: What stands outside the image: SAME (zeros, as JAX, Flax and Keras lay them),
            SAME_LOWER, SAME_TORCH (as PyTorch's "same", at every stride: half of the dilated kernel
            before, rounded down), VALID, CIRCULAR, REFLECT, EDGE, MEAN, CAUSAL; or so many zeros on
            every side, such as 1; or for each axis a number or a pair before,after, such as 0,1.
        groups: Groups of channels.
        num_heads: min takes as few heads as this kernel needs, in place of one for each offset.
        head_dim: Split heads so that each has this dimension.
        border: register adds one key of zero value in place of the zeros around the image.
        causal: Mask the keys after a query's own, with --padding CAUSAL.
        layers: 2 writes two layers, of K and K + 1 heads in place of K² + 1.
        seed: The seed of the random image.
    """

    weights: Annotated[Positional[Path], option("WEIGHTS")]
    layer: Annotated[str | None, option("NAME")] = None
    output: Annotated[Path | None, option("FILE", aliases=["-o"])] = None
    layout: Literal["auto", "hwio", "oihw", "ohwi"] = "auto"
    ignore: Annotated[tuple[str, ...], arg(metavar="NAME [NAME]")] = ()
    bias: Annotated[Path | None, option("FILE")] = None
    format: Literal["convattn", "flax", "torch"] = "convattn"
    image_size: Annotated[Sizes | None, option("H [W]")] = None
    patch_size: Annotated[Sizes, arg(metavar="P [P]")] = (1,)
    encoding: Literal["bias", "quadratic", "enumerated", "polygon", "rotary", "scalar"] = "bias"
    form: Annotated[Literal["exact", "limit"] | None, option("{exact,limit}")] = None
    uniform_weight: float = 0.5
    stride: Annotated[Sizes, arg(metavar="S [S]")] = (1,)
    dilation: Annotated[Sizes, arg(metavar="D [D]")] = (1,)
    padding: Annotated[tuple[str, ...], arg(metavar="WORD [WORD]")] = ("SAME",)
    groups: int = 1
    num_heads: Annotated[Literal["min"] | None, option("{min}")] = None
    head_dim: Annotated[int | None, option("N")] = None
    border: Literal["zeros", "register"] = "zeros"
    causal: Flag = False
    layers: Literal[1, 2] = 1
    seed: int = 0
    json: Json = None

    def __call__(self) -> int:
        """Convert, run what would be written against the convolution, and write it.

        Returns:
            0, or 1 if a result was further from the convolution than its bound, and then nothing
            is written.

        Raises:
            UsageError: If a file cannot be read or written, or the conversion is refused.
        """
        image = None if self.image_size is None else sizes_of(self.image_size, "--image-size")
        require_seed(self.seed)
        if self.layers == 2:
            for name in (name for name in changed_options(self) if name in NOT_OF_TWO_LAYERS):
                raise UsageError(
                    f"{name} does not go with --layers 2: two layers are biases, zero-padded, "
                    "in our own layout"
                )
            same = ("SAME_TORCH",) if max(self.stride) > 1 else ("SAME_TORCH", "SAME")
            if self.padding not in [(each,) for each in same]:
                raise UsageError(
                    f"--padding {' '.join(self.padding)} does not go with --layers 2, which lays "
                    f"zeros as {' and '.join(same)} does at this stride; give --padding "
                    "SAME_TORCH, or leave --layers 2 out"
                )
        if self.format != "convattn" and image is None:
            raise UsageError(
                f"--format {self.format} needs --image-size: its scores are stored pair by pair"
            )
        target = weights_target(
            self.weights, self.output, "attention", {"--bias": self.bias}, self.json
        )
        try:
            return self._to_attention(target, image)
        except ValueError as error:
            raise UsageError(str(error)) from error

    def _to_attention(self, target: Path, image_size: int | Sizes | None) -> int:
        arguments: dict[str, Any] = {
            "patch_size": sizes_of(self.patch_size, "--patch-size"),
            "form": self.form,
            "uniform_weight": self.uniform_weight,
            "stride": sizes_of(self.stride, "--stride"),
            "dilation": sizes_of(self.dilation, "--dilation"),
            "groups": self.groups,
        }
        if self.layers == 1:
            arguments |= {
                "encoding": self.encoding,
                "padding": _padding_of(self.padding),
                "num_heads": self.num_heads,
                "head_dim": self.head_dim,
                "border": self.border,
                "causal": self.causal,
            }
        try:
            convolution = self._find()
        except OSError as error:
            raise UsageError(cannot("read", error)) from error
        import jax

        from convattn.networks.weights.converted_layer import convert_to_two_layers, convert_weights
        from convattn.networks.weights.files import has_64_bits

        if has_64_bits(
            array for array in (convolution.kernel, convolution.bias) if array is not None
        ):
            jax.config.update("jax_enable_x64", True)
        common: dict[str, Any] = {"image_size": image_size, "seed": self.seed, "name": target.name}
        if self.layers == 2:
            converted = convert_to_two_layers(
                convolution.kernel, convolution.bias, arguments, **common
            )
        else:
            common["layout"] = self.format
            converted = convert_weights(convolution.kernel, convolution.bias, arguments, **common)
        numbers = {
            "heads": converted.heads,
            "kernel": list(convolution.kernel.shape),
            "kernel_name": convolution.kernel_name,
            "bias_name": convolution.bias_name,
            "layout": convolution.layout,
            "layout_told_by": convolution.inferred_from,
            "parts": list(convolution.parts),
            "ignored": list(self.ignore),
            "notes": [
                note
                for note in (
                    convolution.assumed,
                    convolution.warning,
                    self._on_padding(convolution),
                )
                if note
            ],
            "format": self.format,
            "output": str(target),
            "arrays": described(converted.arrays),
            "arguments": arguments,
            "comparisons": [asdict(comparison) for comparison in converted.comparisons],
        }
        lines = [
            f"kernel {convolution.kernel_name or ''} {tuple(convolution.kernel.shape)}, stored as "
            f"{convolution.layout} ({convolution.inferred_from}), "
            + (f"computed from {' and '.join(convolution.parts)}, " if convolution.parts else "")
            + f"bias {convolution.bias_name or 'none'} -> "
            f"{converted.heads} heads" + (" in two layers" if self.layers == 2 else ""),
            *numbers["notes"],
            *array_lines(numbers["arrays"]),
            *(_comparison_line(comparison) for comparison in numbers["comparisons"]),
        ]
        passed = all(comparison.passed for comparison in converted.comparisons)
        return finish(target, converted.content, passed, self.json, numbers, lines)

    def _on_padding(self, convolution: Any) -> str:
        """What SAME means, where PyTorch, whose kernel it seems to be, would lay other zeros."""
        if convolution.layout != "oihw" or self.padding != ("SAME",) or max(self.stride) == 1:
            return ""
        return (
            "padding SAME is XLA's and Flax's, which PyTorch's padding=K//2 is not at a stride of "
            f"{max(self.stride)}: for that one give --padding SAME_TORCH"
        )

    def _find(self) -> Any:
        """The kernel and the bias."""
        from convattn.networks.weights.convolution_layout import find_convolution
        from convattn.networks.weights.files import read_weights

        path = self.weights
        convolution = find_convolution(
            read_weights(path, self.ignore),
            self.layer,
            self.layout,
            path.stem,
            self.bias is None,
        )
        if self.bias is None:
            return convolution
        file = read_weights(self.bias)
        if len(file.arrays) != 1:
            raise UsageError(f"--bias got {self.bias}, but expected one array: {file.listing()}")
        return replace(convolution, bias=file[next(iter(file.arrays))], bias_name=str(self.bias))


def _padding_of(words: tuple[str, ...]) -> str | int | tuple[int | tuple[int, ...], ...]:
    """A padding as `conv` takes it.

    >>> _padding_of(("EDGE",)), _padding_of(("1",)), _padding_of(("0,1", "2"))
    ('EDGE', 1, ((0, 1), 2))
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
        if not comparison["passed"] and comparison["error"] <= comparison["bound"]:
            verdict = (
                f"TOO MUCH: rounding alone may reach {comparison['bound']:.3g}, so that nothing is "
                "shown; take a smaller --uniform-weight, another encoding, or weights of float64"
            )
    return (
        f"{run} in {comparison['dtype']}: largest difference {comparison['error']:.3g}, {verdict} "
        f"(largest value {comparison['largest']:.3g})"
    )
