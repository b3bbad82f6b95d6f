"""Whether a kernel that is read as `[*K, in, out]` looks like PyTorch's `[out, in, *K]`.

Nothing is wrong with the shape of such a kernel, so it cannot be refused: it is one of out × in
taps. It looks like PyTorch's where it would have more taps on an axis than it has channels, and be
of a form that is hardly used: of an even number of taps, or of different numbers on the two axes.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

from convattn.operators import convolution

P = ParamSpec("P")
R = TypeVar("R")
_USUAL = (3, 5, 7)  # sides of a square kernel
SMALL = range(2, 17)
FEW, MANY = 7, 32  # taps on an axis: any number up to the one is usual, none from the other
LONG = 25  # taps on both axes: hardly of a kernel that is not depthwise


def reading(shape: Sequence[int]) -> str:
    """What a kernel `[*K, in, out]` is.

    >>> reading((3, 3, 16, 64)), reading((5, 3, 8))
    ('3 × 3 taps of 16 channels in and 64 out', '5 taps of 3 channels in and 8 out')
    """
    *taps, inputs, outputs = shape
    return f"{' × '.join(map(str, taps))} taps of {inputs} channels in and {outputs} out"


def looks_like_pytorch(shape: Sequence[int]) -> bool:
    """Whether a kernel `[*K, in, out]` of this shape is more likely one `[out, in, *K]`.

    >>> shapes = [(64, 3, 7, 7), (8, 8, 1, 1), (8, 8, 3, 3), (64, 32, 1, 7), (16, 16, 3)]
    >>> all(map(looks_like_pytorch, shapes))
    True
    >>> shapes = [(3, 3, 8, 8), (7, 7, 3, 64), (1, 1, 3, 3), (5, 5, 1, 1), (9, 9, 1, 96), (3, 2, 2)]
    >>> any(map(looks_like_pytorch, shapes))
    False
    """
    if len(shape) not in (3, 4):
        return False
    *taps, inputs, outputs = shape
    widest, channels = max(taps), max(inputs, outputs)
    is_even, is_wide = widest % 2 == 0, widest > max(FEW, channels)
    if len(taps) == 1:
        is_long = widest >= MANY and outputs in (1, *SMALL)
        is_few = is_even and widest > FEW and outputs in range(3, FEW + 1)
        is_head = widest >= LONG and inputs > MANY and outputs == 1
        is_gate = widest == inputs == 1 and outputs % 2 == 1  # of the channels, taken as pixels
        is_square = widest == inputs > FEW and outputs in SMALL
        is_sound = inputs == 1 and widest > FEW and _is_length(outputs, widest)
        is_named = is_long or is_few or is_square or is_sound or is_head or is_gate
        return channels > 1 and (is_named or (is_wide and is_even))
    odd_taps = inputs % 2 == outputs % 2 == 1
    if taps[0] != taps[1]:
        if taps[1] == 1 and is_even and widest > FEW:  # [out, 1, K, K] of sounds and of texts
            if 1 in (inputs, outputs):  # or [C, 1, 1, K], strips of odd length for each channel
                return widest <= channels or channels % 2 == 1
            if odd_taps and min(inputs, outputs) > FEW:
                return True
            if widest >= MANY and inputs in SMALL:
                return True
        if inputs == outputs in SMALL:
            return min(taps) > 1 or inputs in _USUAL or (is_wide and is_even)
        return is_wide and (is_even or min(taps) > 1)
    if inputs == outputs in _USUAL:
        return widest > channels and (is_even or widest not in SMALL)
    if widest >= LONG and inputs != outputs and is_wide:
        return is_even or inputs > 1
    return is_wide and is_even and (odd_taps or inputs == outputs)


def looks_like_other_taps(shape: Sequence[int], other: Sequence[int]) -> bool:
    """Whether the second reading `[*K, in, out]` of a kernel is more likely, by its taps.

    It is where it has as many on both axes, and the first has not: more than one, or one where the
    first has an even number beyond seven on one axis, of one channel in and many out. Of a sequence
    it is where it has 3, 5 or 7, and the first an even number beyond.

    >>> looks_like_other_taps((7, 3, 7, 64), (7, 7, 3, 64))
    True
    >>> looks_like_other_taps((32, 3, 64), (3, 32, 64)), looks_like_other_taps((80, 1, 64), (1, 1))
    (True, False)
    >>> looks_like_other_taps((1, 5, 1, 64), (1, 1, 5, 64))
    False
    """
    *taps, inputs, outputs = shape
    longest, others = max(taps), tuple(other[: len(taps)])
    is_long = longest % 2 == 0 and longest > FEW
    if len(taps) == 1:
        return is_long and others[0] in _USUAL
    if others == (1, 1):
        return is_long and 1 in taps and inputs == 1 and outputs > MANY
    return taps[0] != taps[1] and others[0] == others[1]


def _is_length(taps: int, filters: int) -> bool:
    """Whether the one number is rather that of taps, and the other that of filters.

    >>> _is_length(251, 80), _is_length(80, 32), _is_length(128, 80)
    (True, True, False)
    """
    powers = [n & (n - 1) == 0 for n in (taps, filters)]
    return (taps > FEW and taps % 2 == 1) or powers == [False, True]


def warns_of_layout(function: Callable[P, R], position: int = 0) -> Callable[P, R]:
    """The same function, with a warning for a kernel that looks like PyTorch's.

    Args:
        function: One that takes a kernel `[*K, in, out]`.
        position: Which of its arguments the kernel is.
    """

    @wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        kernel = args[position] if len(args) > position else options.get("kernel")
        shape: tuple[int, ...] = np.shape(kernel) if kernel is not None else ()  # type: ignore[call-overload]
        if looks_like_pytorch(shape):
            sides, order = (", K, K", "2, 3, 1, 0") if len(shape) == 4 else (", K", "2, 1, 0")
            ours = "[K_1, K_2, in, out]" if len(shape) == 4 else "[K, in, out]"
            turned = (*shape[2:], shape[1], shape[0])
            warnings.warn(
                f"kernel.shape={shape} is read as {ours}: {reading(shape)}. As PyTorch's [out, in"
                f"{sides}] it is {reading(turned)}: then give kernel.transpose({order})",
                stacklevel=2,
            )
        return function(*args, **options)

    return checked


conv = warns_of_layout(convolution.conv, position=1)
