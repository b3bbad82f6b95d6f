"""What the arguments of `nnx.Conv` mean, and which of them attention does not express."""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
from flax import nnx
from jax import lax

from convattn.operators.padding import Padding, read_padding

OURS = {"SAME": "SAME_XLA"} | {
    name: name for name in ("SAME_LOWER", "VALID", "CAUSAL", "CIRCULAR", "REFLECT")
}


def flax_padding(padding: Any, kernel_size: Sequence[int], dilation: Sequence[int]) -> Padding:
    """What Flax means by a padding.

    >>> flax_padding("SAME", (3,), (1,)) == read_padding("SAME_XLA", (3,), (1,))
    True

    Raises:
        ValueError: For what `nnx.Conv` does not take.
    """
    name = padding.upper() if isinstance(padding, str) else None
    if name == "CAUSAL" and len(kernel_size) > 1:
        raise ValueError(
            f"padding={padding!r} with {len(kernel_size)} spatial axes, but expected a sequence"
        )
    if name in OURS:
        return read_padding(OURS[name], kernel_size, dilation)
    try:
        if name is None:
            return read_padding(padding, kernel_size, dilation)
    except ValueError:
        pass
    raise ValueError(
        f"padding={padding!r}, but expected one of {', '.join(OURS)}, an integer "
        "or one integer or pair for each axis, as nnx.Conv takes them"
    )


def check_conv(conv: nnx.Conv) -> None:
    """Refuse a convolution that attention does not express, or of which it is not known.

    Raises:
        ValueError: As described above.
    """
    if type(conv) is not nnx.Conv:
        raise ValueError(
            f"conv={type(conv).__name__}, but expected an nnx.Conv; subclasses and transposed "
            "convolutions may compute something else"
        )
    axes, shape = len(conv.kernel_size), conv.kernel[...].shape
    inputs = conv.in_features // conv.feature_group_count
    if shape[-axes - 2 :] != (*conv.kernel_size, inputs, conv.out_features):
        raise ValueError(
            f"conv.kernel.shape={shape}, but expected {axes} spatial axes, in and out, behind "
            "those that layers of a scanned or vmapped module are stacked on; stack them on the "
            "first"
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
        if is_computed(getattr(conv, name)):
            raise ValueError(
                f"conv.{name} is a {type(getattr(conv, name)).__name__} that computes its value at "
                "each reading, by get_value or a hook, but expected one that holds it: attention "
                "in its place would not follow"
            )
    refuse(conv.input_dilation, conv.mask, axes)


def is_computed(variable: nnx.Variable | None) -> bool:
    """Whether what a variable gives is not what it holds."""
    if variable is None:
        return False
    both = [
        [getattr(kind, name, None) for name in ("get_value", "__getitem__")]
        for kind in (type(variable), nnx.Variable)
    ]
    return both[0] != both[1] or bool(variable.get_metadata().get("on_get_value"))


def refuse(input_dilation: Any, mask: Any, axes: int) -> None:
    """Refuse what attention does not express.

    Raises:
        ValueError: As described above.
    """
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
