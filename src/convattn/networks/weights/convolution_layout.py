"""A convolution's kernel and bias in a file: which arrays they are, and in which order of axes.

| layout | images         | sequences    | who writes it                                |
|--------|----------------|--------------|----------------------------------------------|
| hwio   | [K, K, in, out] | [K, in, out] | Flax, Keras, this library                    |
| oihw   | [out, in, K, K] | [out, in, K] | PyTorch                                      |

Both hold the kernel of a cross-correlation, so going from one to the other only moves axes. With
groups both have in/groups on the axis `in`, and the output channels of a group stand together.
"""

import re
from dataclasses import dataclass

import numpy as np

from convattn.files import shown
from convattn.networks.weights.files import WeightsFile
from convattn.networks.weights.fixed_size import METADATA
from convattn.networks.weights.formats import WeightsRefused
from convattn.networks.weights.names import looks_like, prefixes_of
from convattn.networks.weights.stored_layer import FORMAT

KERNEL_NAMES = {"kernel": "hwio", "weight": "oihw"}
SEPARATORS = (".", "/")
OUTPUT_MARK = ":0"  # of the variables of Keras and TensorFlow, as in conv2d/kernel:0
BIAS_LIKE = re.compile(r"(?P<prefix>|.*[_-])(b|bias|biases)(:\d+)?", re.IGNORECASE)


def bias_name(file: WeightsFile, kernel_name: str, channels: int) -> str | None:
    """`NAME.bias` or `NAME/bias` beside `NAME.weight` or `NAME/kernel`; `bias` beside `weight`.

    Args:
        kernel_name: What the file calls the kernel; with Keras's `:0` behind it, so has the bias.
        channels: Of the convolution's output.

    Returns:
        None if there is no bias.

    Raises:
        WeightsRefused: If no array has such a name, but one of shape `[channels]` may be the bias
            all the same, such as `conv.b` beside `conv.w`: to leave it out would be silent and
            wrong.

    >>> import numpy as np
    >>> bias_name(WeightsFile("net", {"conv/bias:0": np.ones(8)}, {}), "conv/kernel:0", 8)
    'conv/bias:0'
    """
    plain = kernel_name.removesuffix(OUTPUT_MARK)
    end = kernel_name[len(plain) :]
    for mark in SEPARATORS:
        head, _, tail = plain.rpartition(mark)
        if tail in KERNEL_NAMES:
            name = f"{head}{mark}bias{end}" if head else f"bias{end}"
        else:
            name = f"{plain}{mark}bias{end}"
        file.require_no_part(name)
        if name in file.arrays:
            return name
    for name, array in file.arrays.items():
        if array.shape == (channels,) and _may_be_bias(name, plain):
            raise WeightsRefused(
                f"{file.name} holds {shown(name)} {array.shape} beside {shown(kernel_name)}, which "
                "may be its bias under a name that is not known here; give the bias with --bias "
                "FILE (zeros for none)"
            )
    return None


def split(name: str) -> tuple[str, str]:
    """What stands before and after the last separator.

    >>> split("stem.conv/kernel"), split("kernel")
    (('stem.conv', 'kernel'), ('', 'kernel'))
    """
    at = max(name.rfind(mark) for mark in SEPARATORS)
    return name[: max(at, 0)], name[at + 1 :]


def _may_be_bias(name: str, kernel_name: str) -> bool:
    """Whether the names agree up to their last words, and that of one means a bias."""
    beside, last = split(name)
    parent, own = split(kernel_name)
    match = BIAS_LIKE.fullmatch(last)
    if match is None or beside != parent:
        return False
    return f"{own}_".replace("-", "_").startswith(match["prefix"].replace("-", "_"))


LAYOUTS = ("hwio", "oihw")
FRAMEWORKS = {"pt": "oihw", "flax": "hwio"}


@dataclass(frozen=True)
class ConvolutionWeights:
    """A convolution as it was found in a file.

    Attributes:
        kernel: `[K, K, in/groups, out]` or `[K, in/groups, out]`.
        bias: `[out]` or None.
        kernel_name, bias_name: What the file calls them; empty for the one array of a `.npy` file,
            None for no bias.
        layout: The order of axes in the file; `told_by` says how it is known.
        parts: The names of the parts that a re-parametrised kernel was computed from.
    """

    kernel: np.ndarray
    bias: np.ndarray | None
    kernel_name: str
    bias_name: str | None
    layout: str
    told_by: str
    parts: tuple[str, ...] = ()


def find_convolution(
    file: WeightsFile,
    layer: str | None = None,
    layout: str = "auto",
    stem: str = "",
    with_bias: bool = True,
) -> ConvolutionWeights:
    """The kernel of a layer, and the bias beside it if there is one.

    Args:
        layer: The kernel's own name, or that of the layer: `NAME.weight`, `NAME.kernel`,
            `NAME/weight` and `NAME/kernel` are looked for, also with Keras's `:0` behind. None if
            the file holds one kernel only.
        layout: `"hwio"`, `"oihw"`, or `"auto"`: a last part `weight` is PyTorch's, `kernel` is
            Flax's, and failing that the file's metadata may name the framework.
        stem: The file's name without its ending; it names the array of a `.npy` file.

    Raises:
        WeightsRefused: For a missing name, a rank that is no convolution's, a layout that nothing
            tells, and a bias that does not fit.

    >>> arrays = {"conv.weight": np.ones((8, 3, 5, 7)), "conv.bias": np.ones(8)}
    >>> file = WeightsFile("net", arrays, {})
    >>> found = find_convolution(file, "conv")
    >>> found.kernel.shape, found.bias.shape, found.layout
    ((5, 7, 3, 8), (8,), 'oihw')
    """
    if layout not in (*LAYOUTS, "auto"):
        raise WeightsRefused(f"layout={layout!r}, but expected auto, {' or '.join(LAYOUTS)}")
    _refuse_attention(file)
    name = _kernel_name(file, layer)
    kernel = file[name]
    label = f"{file.name}: {shown(name)}" if name else file.name
    if kernel.ndim not in (3, 4) or 0 in kernel.shape:
        raise WeightsRefused(
            f"{label} has shape {kernel.shape}, but a convolution's kernel has 4 axes (images) or "
            "3 (sequences), none of them empty; is it a dense layer, a norm or an embedding?"
        )
    order, told_by = (layout, "as given") if layout != "auto" else _told(file, name, stem, kernel)
    kernel = from_layout(kernel, order)
    beside = bias_name(file, name, kernel.shape[-1]) if with_bias else None
    bias = None if beside is None else file[beside]
    if bias is not None and bias.shape != kernel.shape[-1:]:
        raise WeightsRefused(
            f"{file.name}: {shown(beside)} has shape {bias.shape}, but {shown(name)} of shape "
            f"{file[name].shape} read as {order} has {kernel.shape[-1]} output channels; is the "
            f"layout {' or '.join(other for other in LAYOUTS if other != order)}?"
        )
    parts = tuple(part for part, tensor in file.parts.items() if tensor == name)
    return ConvolutionWeights(kernel, bias, name, beside, order, told_by, parts)


def from_layout(kernel: np.ndarray, layout: str) -> np.ndarray:
    """A kernel, or a linear map, of a layout in this library's order of axes.

    >>> from_layout(np.ones((8, 3, 5, 7)), "oihw").shape
    (5, 7, 3, 8)
    """
    return np.ascontiguousarray(
        np.moveaxis(kernel, (0, 1), (-1, -2)) if layout == "oihw" else kernel
    )


def arrange(kernel: np.ndarray, layout: str) -> np.ndarray:
    """A kernel of this library in the order of axes of a layout.

    >>> arrange(np.ones((5, 7, 3, 8)), "oihw").shape
    (8, 3, 5, 7)
    """
    return np.ascontiguousarray(
        np.moveaxis(kernel, (-1, -2), (0, 1)) if layout == "oihw" else kernel
    )


def _kernel_name(file: WeightsFile, layer: str | None) -> str:
    if layer is None:
        file.require_computed()
        kernels = [name for name, array in file.arrays.items() if array.ndim in (3, 4)]
        if len(file.arrays) == 1:
            kernels = list(file.arrays)
        if len(kernels) != 1:
            what = "several kernels" if kernels else "no kernel"
            raise WeightsRefused(
                f"{file.name} holds {what}{_kind(file)}; name the layer with --layer: "
                f"{file.listing()}"
            )
        return kernels[0]
    if layer in file.arrays:
        return layer
    names = [
        f"{layer}{mark}{kind}{end}"
        for mark in SEPARATORS
        for kind in KERNEL_NAMES
        for end in ("", OUTPUT_MARK)
    ]
    for name in (layer, *names):
        file.require_no_part(name)
    found = [name for name in names if name in file.arrays]
    if len(found) > 1:
        raise WeightsRefused(
            f"{file.name} holds {' and '.join(sorted(found))}; name one with --layer"
        )
    if not found:
        prefixes = [prefix for name in names for prefix in prefixes_of(file.arrays, name)]
        if len(prefixes) == 1:
            raise WeightsRefused(
                f"{file.name} has no layer {layer!r}, but {prefixes[0] + layer!r}, with the prefix "
                f"{prefixes[0]!r}; give that name with --layer"
            )
        raise WeightsRefused(
            f"{file.name} has no layer {layer!r}, neither as it stands nor with .weight, .kernel, "
            f"/weight or /kernel{_kind(file)}; {file.listing(layer)}"
        )
    return found[0]


def _kind(file: WeightsFile) -> str:
    kind = looks_like(file.arrays)
    return f" (the tensors look like {kind})" if kind else ""


def _refuse_attention(file: WeightsFile) -> None:
    if file.metadata.get("format") == FORMAT:
        raise WeightsRefused(
            f"{file.name} is an attention layer of this library, not a convolution; to go back to "
            "one use --to-convolution"
        )
    if METADATA in file.metadata:
        raise WeightsRefused(
            f"{file.name} is an attention layer for one image size, not a convolution; only a file "
            "written with --write ours goes back to one, with --to-convolution"
        )


def _told(file: WeightsFile, name: str, stem: str, kernel: np.ndarray) -> tuple[str, str]:
    last = split((name or stem).removesuffix(OUTPUT_MARK))[1]
    if last in KERNEL_NAMES:
        return KERNEL_NAMES[last], f"told from the name {last!r}"
    framework = file.metadata.get("format")
    if framework in FRAMEWORKS:
        return FRAMEWORKS[framework], f"told from the file's metadata format={framework!r}"
    axes = ("K, K, ", ", K, K") if kernel.ndim == 4 else ("K, ", ", K")
    label = shown(name) if name else "its array"
    raise WeightsRefused(
        f"{file.name}: nothing tells the order of the axes {kernel.shape} of {label}; say --layout "
        f"hwio for [{axes[0]}in, out] (Flax, Keras) or --layout oihw for [out, in{axes[1]}] "
        "(PyTorch)"
    )
