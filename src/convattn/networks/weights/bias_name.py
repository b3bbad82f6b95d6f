"""Which array of a file is a kernel's bias, told from the names."""

import re

from convattn.networks.weights.files import WeightsFile
from convattn.networks.weights.refusal import WeightsRefused

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
        if name in file.arrays:
            return name
    for name, array in file.arrays.items():
        if array.shape == (channels,) and _may_be_bias(name, plain):
            raise WeightsRefused(
                f"{file.name} holds {name!r} {array.shape} beside {kernel_name!r}, which may be "
                "its bias under a name that is not known here; give the bias with --bias FILE "
                "(zeros for none)"
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
