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

from convattn.files import brief
from convattn.networks.weights.beside_kernel import changing, merge_hint
from convattn.networks.weights.bias_names import (
    KERNEL_NAMES,
    OUTPUT_MARK,
    SEPARATORS,
    bias_name,
    split,
)
from convattn.networks.weights.files import WeightsFile
from convattn.networks.weights.fixed_size import METADATA
from convattn.networks.weights.formats import WeightsRefused
from convattn.networks.weights.names import (
    looks_like,
    name_of_variable,
    plain_name,
    prefixes_of,
)
from convattn.networks.weights.stored_layer import FORMAT
from convattn.operators.kernel_layout import (
    looks_like_other_taps,
    looks_like_pytorch,
    reading,
)

# As modules of Big Transfer, timm, NFNets and diffusion models are called.
_STANDARDISED = re.compile(r"standardi[sz]ed|std_?conv|ws_?conv|weight_?standard")


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
        layout: The order of axes in the file; `inferred_from` says how it is known.
        parts: The names of the parts that a re-parametrised kernel was computed from.
        assumed: What these do not say, and how it was read; or the empty text.
        warning: What else the kernel looks like, or None.
    """

    kernel: np.ndarray
    bias: np.ndarray | None
    kernel_name: str
    bias_name: str | None
    layout: str
    inferred_from: str
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
    >>> convolution = find_convolution(file, "conv")
    >>> convolution.kernel.shape, convolution.bias.shape, convolution.layout
    ((5, 7, 3, 8), (8,), 'oihw')
    """
    if layout not in (*LAYOUTS, "auto"):
        raise WeightsRefused(f"layout={layout!r}, but expected auto, {' or '.join(LAYOUTS)}")
    _refuse_attention(file)
    file = file.with_plain_names()
    name = _kernel_name(file, layer)
    kernel = file[name]
    label = f"{file.name}: {brief(name)}" if name else file.name
    if kernel.ndim not in (3, 4) or 0 in kernel.shape:
        raise WeightsRefused(
            f"{label} has shape {kernel.shape}, but a convolution's kernel has 4 axes (images) or "
            "3 (sequences), none of them empty; is it a dense layer, a norm or an embedding?"
        )
    order, inferred_from = (
        (layout, "as given") if layout != "auto" else _inferred_layout(file, name, stem, kernel)
    )
    kernel = _from_layout(kernel, order)
    beside = bias_name(file, name, kernel.shape[-1]) if with_bias else None
    bias = None if beside is None else file[beside]
    if bias is not None and bias.shape != kernel.shape[-1:]:
        fits = [axes for axes in LAYOUTS if _from_layout(file[name], axes).shape[-1:] == bias.shape]
        raise WeightsRefused(
            f"{file.name}: {brief(beside)} has shape {bias.shape}, but {brief(name)} of shape "
            f"{file[name].shape} read as {order} has {kernel.shape[-1]} output channels; "
            + (f"is the layout {' or '.join(fits)}?" if fits else "give another with --bias FILE")
        )
    parts_of_refused = [part for part, of in file.parts.items() if of in file.refused]
    unread = dict.fromkeys([*parts_of_refused, *file.refused], np.empty(0))
    if others := changing({**file.arrays, **unread}, name, beside, kernel.shape[-1], with_bias):
        listed = ", ".join(brief(other, 100) for other in others[:6])
        raise WeightsRefused(
            f"{label} has {listed} beside it, which may change the kernel that the module computes "
            f"with, but expected that kernel; {merge_hint(others)}; or, if it changes nothing, "
            f"give --ignore {' '.join(others[:6])}"
        )
    parts = tuple(part for part, tensor in file.parts.items() if tensor == name)
    warning = _warning(file[name], order)
    assumed = file.assumed.get(name, "")
    return ConvolutionWeights(
        kernel, bias, name, beside, order, inferred_from, parts, assumed, warning
    )


def _warning(stored: np.ndarray, order: str) -> str | None:
    shapes = {layout: np.moveaxis(stored, AXES[layout], (-2, -1)).shape for layout in LAYOUTS}
    other = _likelier(shapes, order)
    if other is None:
        return None
    return (
        f"warning: {stored.shape} is read as {order}: {reading(shapes[order])}. As {other} it is "
        f"{reading(shapes[other])}: then give --layout {other}"
    )


def _likelier(shapes: dict[str, tuple[int, ...]], order: str) -> str | None:
    """The layout that the shape is rather of, by how it reads in each; None for the same.

    >>> shapes = {"hwio": (32, 3, 3, 16), "oihw": (3, 16, 3, 32), "ohwi": (3, 3, 16, 32)}
    >>> _likelier(shapes, "oihw"), _likelier(shapes, "hwio"), _likelier(shapes, "ohwi")
    ('ohwi', 'ohwi', None)
    """
    first, second = ("ohwi", "oihw") if order == "ohwi" else ("oihw", "ohwi")
    is_rather_second = looks_like_other_taps(shapes[first], shapes[second])
    rows, columns = shapes["hwio"][:2]
    if order == first and is_rather_second and (len(shapes[order]) == 3 or rows != columns):
        return second
    other = "hwio" if order != "hwio" else second if is_rather_second else first
    is_other = looks_like_pytorch(shapes[order]) and not looks_like_pytorch(shapes[other])
    return other if is_other else None


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
    layer = next(
        (n for n in (layer, name_of_variable(layer)) if n in file.arrays), plain_name(layer)
    )
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
    matches = [name for name in names if name in file.arrays]
    if len(matches) > 1:
        raise WeightsRefused(
            f"{file.name} holds {' and '.join(sorted(matches))}; name one with --layer"
        )
    if not matches:
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
    return matches[0]


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


def _inferred_layout(
    file: WeightsFile, name: str, stem: str, kernel: np.ndarray
) -> tuple[str, str]:
    if "transpose" in (name or stem).lower():
        raise WeightsRefused(
            f"{file.name}: {brief(name or stem)} is called a transposed convolution, which is "
            "another map; if it is a convolution all the same, say so with --layout"
        )
    if _STANDARDISED.search((name or stem).lower()):
        raise WeightsRefused(
            f"{file.name}: {brief(name or stem)} is called a standardised convolution, whose "
            "module makes (W - mean)/std of the kernel at each call, but expected the kernel that "
            "is applied; store that one, or, if it is, say so with --layout"
        )
    last = split((name or stem).removesuffix(OUTPUT_MARK))[1]
    framework = file.metadata.get("format")
    if last in KERNEL_NAMES and framework != "mlx":
        return KERNEL_NAMES[last], f"told from the name {last!r}"
    if framework in FRAMEWORKS:
        return FRAMEWORKS[framework], f"told from the file's metadata format={framework!r}"
    axes = ("K, K, ", ", K, K") if kernel.ndim == 4 else ("K, ", ", K")
    label = brief(name) if name else "its array"
    raise WeightsRefused(
        f"{file.name}: nothing tells the order of the axes {kernel.shape} of {label}; say --layout "
        f"hwio for [{axes[0]}in, out] (Flax, Keras) or --layout oihw for [out, in{axes[1]}] "
        "(PyTorch)"
    )
