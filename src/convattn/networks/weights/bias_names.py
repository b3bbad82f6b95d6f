"""Which array of a file is the bias of a kernel, by their names."""

import re

from convattn.files import brief
from convattn.networks.weights.files import WeightsFile
from convattn.networks.weights.formats import WeightsRefused

KERNEL_NAMES = {"kernel": "hwio", "weight": "oihw"}
SEPARATORS = (".", "/")
OUTPUT_MARK = ":0"  # of the variables of Keras and TensorFlow, as in conv2d/kernel:0
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
        is_row = array.size == channels and channels in array.shape
        if is_row and name != kernel_name and _may_be_bias(name, plain):
            raise WeightsRefused(
                f"{file.name} holds {brief(name)} {array.shape} beside {brief(kernel_name)}, which "
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
    return re.sub(WORDS, "b", name.removesuffix(OUTPUT_MARK).lower())
