"""A convolution's kernel and bias in a file: which arrays they are, and in which order of axes.

| layout | images         | sequences    | who writes it                                |
|--------|----------------|--------------|----------------------------------------------|
| hwio   | [K, K, in, out] | [K, in, out] | Flax, Keras, this library                    |
| oihw   | [out, in, K, K] | [out, in, K] | PyTorch                                      |
| ohwi   | [out, K, K, in] | [out, K, in] | MLX                                          |

All hold the kernel of a cross-correlation, so going from one to another only moves axes. With
groups all have in/groups on the axis `in`, and the output channels of a group stand together.
"""

import re
from dataclasses import dataclass

import numpy as np

from convattn.files import shown
from convattn.networks.weights.beside_kernel import changing, merge_hint
from convattn.networks.weights.files import WeightsFile
from convattn.networks.weights.fixed_size import METADATA
from convattn.networks.weights.formats import WeightsRefused
from convattn.networks.weights.names import looks_like, prefixes_of
from convattn.networks.weights.stored_layer import FORMAT
from convattn.operators.kernel_layout import looks_like_pytorch, reading

_KERNEL_NAMES = {"kernel": "hwio", "weight": "oihw"}
_SEPARATORS = (".", "/")
# As modules of Big Transfer, timm, NFNets and diffusion models are called.
_STANDARDISED = re.compile(r"standardi[sz]ed|std_?conv|ws_?conv|weight_?standard")
_OUTPUT_MARK = ":0"  # of the variables of Keras and TensorFlow, as in conv2d/kernel:0
WORDS = r"kernels?|weights?|filters?|wgt|w|bias(es)?|bs"
_BIAS_LIKE = re.compile(r"(?P<prefix>|.*[_-])(b|bias|biases)(:\d+)?", re.IGNORECASE)


def bias_name(file: WeightsFile, kernel_name: str, channels: int) -> str | None:
    """`NAME.bias` or `NAME/bias` beside `NAME.weight` or `NAME/kernel`; `bias` beside `weight`.

    Args:
        kernel_name: What the file calls the kernel; with Keras's `:0` behind it, so has the bias.
        channels: Of the convolution's output.

    Returns:
        None if there is no bias.

    >>> import numpy as np
    >>> bias_name(WeightsFile("net", {"conv/bias:0": np.ones(8)}, {}), "conv/kernel:0", 8)
    'conv/bias:0'
    """
    plain = kernel_name.removesuffix(_OUTPUT_MARK)
    end = kernel_name[len(plain) :]
    for mark in _SEPARATORS:
        head, _, tail = plain.rpartition(mark)
        if tail in _KERNEL_NAMES:
            name = f"{head}{mark}bias{end}" if head else f"bias{end}"
        else:
            name = f"{plain}{mark}bias{end}"
        file.require_no_part(name)
        if name in file.arrays:
            return name
    for name, array in file.arrays.items():
        is_row = array.size == channels and channels in array.shape
        if is_row and name != kernel_name and _may_be_bias(name, plain):
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
    at = max(name.rfind(mark) for mark in _SEPARATORS)
    return name[: max(at, 0)], name[at + 1 :]


def _may_be_bias(name: str, kernel_name: str) -> bool:
    """Whether the names agree up to their last words, and that of one means a bias.

    Or they are the same but for words that mean a bias and words that mean a kernel; or they end in
    numbers, that of the bias in the next one.

    >>> others = ("net/b", "net/b_1", "b/b_1", "net/w_2", "net/a", "other/b_2")
    >>> [_may_be_bias(name, "net/w_1") for name in others]
    [True, True, False, True, False, False]
    """
    (beside, last), (parent, own) = split(name), split(kernel_name)
    match = _BIAS_LIKE.fullmatch(last) if beside == parent else None
    stem = None if match is None else match["prefix"].replace("-", "_")
    if stem is not None and f"{own}_".replace("-", "_").startswith(stem):
        return True
    number = re.search(r"\d+$", kernel_name)
    following = number and f"{kernel_name[: number.start()]}{int(number[0]) + 1}"
    return name == following or _without_words(name) == _without_words(kernel_name)


def _without_words(name: str) -> str:
    """A name in which a kernel and its bias are called the same."""
    return re.sub(WORDS, "b", name.removesuffix(_OUTPUT_MARK).lower())


AXES = {"hwio": (-2, -1), "oihw": (1, 0), "ohwi": (-1, 0)}  # where in and out stand
LAYOUTS = tuple(AXES)
FRAMEWORKS = {"pt": "oihw", "flax": "hwio", "mlx": "ohwi"}


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
        assumed: What these do not say, and how it was read; or the empty text.
        warning: What else the kernel looks like, or None.
    """

    kernel: np.ndarray
    bias: np.ndarray | None
    kernel_name: str
    bias_name: str | None
    layout: str
    told_by: str
    parts: tuple[str, ...] = ()
    assumed: str = ""
    warning: str | None = None


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
        layout: `"hwio"`, `"oihw"`, `"ohwi"`, or `"auto"`: a last part `weight` is PyTorch's, but
            MLX's in a file whose metadata names MLX, `kernel` is Flax's, and failing that the
            file's metadata may name the framework.
        stem: The file's name without its ending; it names the array of a `.npy` file.

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
    kernel = _from_layout(kernel, order)
    beside = bias_name(file, name, kernel.shape[-1]) if with_bias else None
    bias = None if beside is None else file[beside]
    if bias is not None and bias.shape != kernel.shape[-1:]:
        fits = [each for each in LAYOUTS if _from_layout(file[name], each).shape[-1:] == bias.shape]
        raise WeightsRefused(
            f"{file.name}: {shown(beside)} has shape {bias.shape}, but {shown(name)} of shape "
            f"{file[name].shape} read as {order} has {kernel.shape[-1]} output channels; "
            + (f"is the layout {' or '.join(fits)}?" if fits else "give another with --bias FILE")
        )
    unread = {part: np.empty(0) for part, of in file.parts.items() if of in file.refused}
    if others := changing({**file.arrays, **unread}, name, beside, kernel.shape[-1], with_bias):
        listed = ", ".join(shown(other, 100) for other in others[:6])
        raise WeightsRefused(
            f"{label} has {listed} beside it, which may change the kernel that the module computes "
            f"with, but expected that kernel; {merge_hint(others)}; or, if it changes nothing, "
            f"give --ignore {' '.join(others[:6])}"
        )
    parts = tuple(part for part, tensor in file.parts.items() if tensor == name)
    warning = _warning(file[name], order)
    assumed = file.assumed.get(name, "")
    return ConvolutionWeights(kernel, bias, name, beside, order, told_by, parts, assumed, warning)


def _warning(stored: np.ndarray, order: str) -> str | None:
    other = "oihw" if order == "hwio" else "hwio"
    shape, turned = (_from_layout(stored, each).shape for each in (order, other))
    if not looks_like_pytorch(shape) or looks_like_pytorch(turned):
        return None
    return (
        f"warning: {stored.shape} is read as {order}: {reading(shape)}. As {other} it is "
        f"{reading(turned)}: then give --layout {other}"
    )


def _from_layout(kernel: np.ndarray, layout: str) -> np.ndarray:
    """A kernel, or a linear map, of a layout in this library's order of axes.

    >>> _from_layout(np.ones((8, 3, 5, 7)), "oihw").shape
    (5, 7, 3, 8)
    """
    return np.ascontiguousarray(np.moveaxis(kernel, AXES[layout], (-2, -1)))


def arrange(kernel: np.ndarray, layout: str) -> np.ndarray:
    """A kernel of this library in the order of axes of a layout.

    >>> arrange(np.ones((5, 7, 3, 8)), "oihw").shape
    (8, 3, 5, 7)
    """
    return np.ascontiguousarray(np.moveaxis(kernel, (-2, -1), AXES[layout]))


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
        for mark in _SEPARATORS
        for kind in _KERNEL_NAMES
        for end in ("", _OUTPUT_MARK)
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
            "one use convattn convert back"
        )
    if METADATA in file.metadata:
        raise WeightsRefused(
            f"{file.name} is an attention layer for one image size, not a convolution; only a file "
            "written with --format convattn goes back to one, with convattn convert back"
        )


def _told(file: WeightsFile, name: str, stem: str, kernel: np.ndarray) -> tuple[str, str]:
    if "transpose" in (name or stem).lower():
        raise WeightsRefused(
            f"{file.name}: {shown(name or stem)} is called a transposed convolution, which is "
            "another map; if it is a convolution all the same, say so with --layout"
        )
    if _STANDARDISED.search((name or stem).lower()):
        raise WeightsRefused(
            f"{file.name}: {shown(name or stem)} is called a standardised convolution, whose "
            "module makes (W - mean)/std of the kernel at each call, but expected the kernel that "
            "is applied; store that one, or, if it is, say so with --layout"
        )
    last = split((name or stem).removesuffix(_OUTPUT_MARK))[1]
    framework = file.metadata.get("format")
    if last in _KERNEL_NAMES and framework != "mlx":
        return _KERNEL_NAMES[last], f"told from the name {last!r}"
    if framework in FRAMEWORKS:
        return FRAMEWORKS[framework], f"told from the file's metadata format={framework!r}"
    axes = ("K, K, ", ", K, K") if kernel.ndim == 4 else ("K, ", ", K")
    label = shown(name) if name else "its array"
    raise WeightsRefused(
        f"{file.name}: nothing tells the order of the axes {kernel.shape} of {label}; say --layout "
        f"hwio for [{axes[0]}in, out] (Flax, Keras) or --layout oihw for [out, in{axes[1]}] "
        "(PyTorch)"
    )
