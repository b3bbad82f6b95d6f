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
        is_few = is_even and widest > FEW and outputs in _USUAL
        return channels > 1 and (is_long or is_few or (is_wide and is_even))
    if taps[0] != taps[1]:
        if inputs == outputs in SMALL:
            return min(taps) > 1 or inputs in _USUAL or (is_wide and is_even)
        return is_wide and (is_even or min(taps) > 1)
    if inputs == outputs in _USUAL:
        return widest > channels and (is_even or widest not in SMALL)
    odd_taps = inputs % 2 == outputs % 2 == 1
    return is_wide and is_even and (odd_taps or inputs == outputs)


def warns_of_layout(function: Callable[P, R], place: int = 0) -> Callable[P, R]:
    """The same function, with a warning for a kernel that looks like PyTorch's.

    Args:
        function: One that takes a kernel `[*K, in, out]`.
        place: Which of its arguments the kernel is.
    """

    @wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        kernel = args[place] if len(args) > place else options.get("kernel")
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


conv = warns_of_layout(convolution.conv, place=1)
