"""What the arguments of `nnx.Conv` mean, and which of them attention does not express."""

import inspect
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from flax import nnx
from jax import lax

from convattn.operators.padding import Padding, read_padding

NAMED = ("SAME", "SAME_LOWER", "VALID", "CAUSAL", "CIRCULAR", "REFLECT")


def flax_padding(
    padding: Any, kernel_size: Sequence[int], dilation: Sequence[int], stride: Sequence[int]
) -> Padding:
    """What Flax means by a padding.

    >>> flax_padding("same", (3,), (1,), (1,)).widths
    ((1, 1),)

    Raises:
        ValueError: For what `nnx.Conv` does not take.
    """
    name = padding.upper() if isinstance(padding, str) else None
    if name == "CAUSAL" and len(kernel_size) > 1:
        raise ValueError(
            f"padding={padding!r} with {len(kernel_size)} spatial axes, but expected a sequence"
        )
    try:
        if name is None or name in NAMED:
            return read_padding(name or padding, kernel_size, dilation, stride)
    except ValueError:
        pass
    raise ValueError(
        f"padding={padding!r}, but expected one of {', '.join(NAMED)}, an integer "
        "or one integer or pair for each axis, as nnx.Conv takes them"
    )


def check_conv(conv: nnx.Conv) -> None:
    """Refuse a convolution that attention does not express, or of which it is not known."""
    if type(conv) is not nnx.Conv:
        raise ValueError(
            f"conv={type(conv).__name__}, but expected an nnx.Conv; subclasses and transposed "
            "convolutions may compute something else"
        )
    axes, shape = len(conv.kernel_size), conv.kernel[...].shape
    inputs = conv.in_features // conv.feature_group_count
    own = (*conv.kernel_size, inputs, conv.out_features)
    if shape[-axes - 2 :] != own:
        raise ValueError(
            f"conv.kernel.shape={shape}, but expected {axes} spatial axes, in and out, behind "
            "those that layers of a scanned or vmapped module are stacked on; stack them on the "
            "first"
        )
    if "stack_axis" not in conv.kernel.get_metadata():
        of_bias = () if conv.bias is None else conv.bias[...].shape
        if not _is_stacked_first(shape, own) and not _is_stacked_first(of_bias, own[-1:]):
            raise ValueError(
                f"conv.kernel.shape={shape} of layers that are stacked, but expected to tell from "
                f"it on which axis: it is {own} without the first, and without another one too; if "
                "it is the first, say so with conv.kernel.set_metadata(stack_axis=0), else stack "
                "them on the first"
            )
    elif conv.kernel.get_metadata("stack_axis") != 0:
        raise ValueError(
            f"conv.kernel has stack_axis={conv.kernel.get_metadata('stack_axis')}, but expected 0; "
            "stack the layers on the first axis"
        )
    if conv.conv_general_dilated is not lax.conv_general_dilated:
        raise ValueError(
            "conv.conv_general_dilated is not lax.conv_general_dilated, so that what it "
            "computes is not known; build the layer without it"
        )
    usual = inspect.signature(nnx.Conv.__init__).parameters["promote_dtype"].default
    if conv.promote_dtype is not usual or conv.preferred_element_type is not None:
        raise ValueError(
            "conv.promote_dtype or conv.preferred_element_type is not the default, but expected a "
            "convolution in one dtype; set dtype instead"
        )
    for name in ("kernel", "bias"):
        if _is_computed(getattr(conv, name)):
            raise ValueError(
                f"conv.{name} is a {type(getattr(conv, name)).__name__} that computes its value at "
                "each reading, by get_value or a hook, but expected one that holds it: attention "
                "in its place would not follow"
            )
    refuse(conv.input_dilation, conv.mask, axes)


def _is_stacked_first(shape: Sequence[int], own: Sequence[int]) -> bool:
    """Whether arrays of a shape of their own can only have been stacked on the first axes.

    >>> _is_stacked_first((4, 3, 2), (3, 2)), _is_stacked_first((3, 3, 2), (3, 2))
    (True, False)
    """
    choices = combinations(range(len(shape)), len(own))
    read = [axes for axes in choices if tuple(shape[axis] for axis in axes) == tuple(own)]
    return read == [tuple(range(len(shape) - len(own), len(shape)))]


def _is_computed(variable: nnx.Variable | None) -> bool:
    """Whether what a variable gives is not what it holds."""
    if variable is None:
        return False
    both = [
        [getattr(kind, name, None) for name in ("get_value", "__getitem__")]
        for kind in (type(variable), nnx.Variable)
    ]
    return both[0] != both[1] or bool(variable.get_metadata().get("on_get_value"))


def refuse(input_dilation: Any, mask: Any, axes: int) -> None:
    """Refuse what attention does not express."""
    if axes not in (1, 2):
        raise ValueError(
            f"kernel_size has {axes} axes, but expected one (sequences) or two (images)"
        )
    if input_dilation is not None and np.any(np.asarray(input_dilation) != 1):
        raise ValueError(
            f"input_dilation={input_dilation}, but expected 1: its output is larger than the "
            "image, and attention gives one for each token of the image"
        )
    if mask is not None:
        raise ValueError("mask was given, but expected None; multiply the kernel by it instead")


def hashable(padding: Any) -> Any:
    """A padding with tuples for lists, so that it can be a static field."""
    if isinstance(padding, str) or not isinstance(padding, Sequence):
        return padding
    return tuple(map(hashable, padding))
