"""What changes a kernel from elsewhere in a file: masks, norms and adapters in other trees.

Each belongs to the kernel that it is nearest to by name. Adapters are known by their names, masks
by these or by their numbers, and norms of a kernel by standing below its own name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from convattn.networks.weights.names import bare, is_subsequence, path_of

SLOT = re.compile(
    r"(kernel|weight|bias)[./](Adam|Momentum|RMSProp|Adagrad|\w+MovingAverage)(_\d+)?"
)
ADAPTER = re.compile(r"(.*_)?(lora|loha|lokr|hada|dora|vera|ia3|boft|oft)(_.*)?", re.IGNORECASE)
_MASK = re.compile(r"((kernel|weight)_)?(masks?|scores?)|sparsity|prun\w*|saliency", re.IGNORECASE)
_OF_TRAINING = re.compile(
    r"opt|opt_states?|optim\w*|slots?|param_states|adam\w*|momentum\w*|grads?|gradients?|"
    r"(.*_)?(ema|averages?)(_.*)?",
    re.IGNORECASE,
)


def in_another_tree(
    kernel: str, weight: np.ndarray, others: Mapping[str, np.ndarray]
) -> Iterator[str]:
    """What of other modules changes the kernel: that whose name is nearest to the kernel's.

    >>> kernel = np.ones((8, 4, 3, 3))
    >>> others = {"masks/a/kernel": np.eye(12, 24).reshape(kernel.shape), "params/b/kernel": kernel}
    >>> [*in_another_tree("params/a/kernel", kernel, others)]
    ['masks/a/kernel']
    >>> [*in_another_tree("params/b/kernel", kernel, {**others, "params/a/kernel": kernel})]
    []
    """
    masks = {name for name, array in others.items() if _is_mask(array, weight.shape)}
    for name, array in others.items():
        if name in masks:
            is_suspect = _may_be_of(kernel, name) and bool(weight[array == 0].any())
        else:
            is_suspect = _is_named_beside(kernel, weight, name, array)
        if is_suspect:
            rivals = [
                rival
                for rival, other in others.items()
                if rival not in masks
                if not _has_part(path_of(rival), _MASK, ADAPTER, _OF_TRAINING)
                if other.shape == weight.shape
                or (name not in masks and other.ndim > 1)
                or not other.size  # it cannot be computed
            ]
            own = _nearness(kernel, name)
            if all(_nearness(rival, name) <= own for rival in rivals if rival != name):
                yield name


def _is_mask(array: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Whether it is of zeros and ones, and not all of it the same."""
    if array.shape != shape or bool(array.all()) or not bool(array.any()):
        return False
    return bool(((array == 0) | (array == 1)).all())


def _may_be_of(kernel: str, name: str) -> bool:
    """Whether the name is not that of another kernel.

    >>> [_may_be_of("p/a/kernel", name) for name in ("masks/a/kernel", "masks/a", "p/b/kernel")]
    [True, True, False]
    """
    path, own = path_of(bare(name)), path_of(bare(kernel))
    return path[-1:] != own[-1:] or path[-2:] == own[-2:]


def _has_part(path: Iterable[str], *kinds: re.Pattern[str]) -> bool:
    """Whether a part of the path is of one of these kinds."""
    return any(kind.fullmatch(part) for part in path for kind in kinds)


def _is_named_beside(kernel: str, weight: np.ndarray, name: str, array: np.ndarray) -> bool:
    """Whether a name says that it belongs to the kernel, as a mask, an adapter or a part of it."""
    path, tail = path_of(bare(name)), path_of(bare(kernel))[-2:]
    if _has_part(path, _OF_TRAINING) or SLOT.fullmatch("/".join(path[-2:])):
        return False
    if path[-len(tail) - 1 : -1] == tail and len(path) > len(tail):
        return True
    if array.size == weight.size and _has_part(path, _MASK):
        changes = array.shape != weight.shape or weight[array != 1].any()
        above, *module = path_of(bare(kernel))[:-1] or ("",)
        words = _words("/".join(module) or above)
        return bool(changes) and is_subsequence(words, _words(name))
    is_adapter = _has_part(path, ADAPTER)
    return is_adapter and len(tail) == 2 and is_subsequence(_words(tail[0]), _words(name))


def _nearness(kernel: str, name: str) -> tuple[int, int]:
    """How many words of a kernel's name are in the other, in order; and less how many it has.

    >>> _nearness("params/conv_1/kernel", "masks/conv_1"), _nearness("conv2.weight", "conv2.mask")
    ((2, -4), (1, -2))
    """
    words, others = _words(kernel), _words(name)
    longest = [0] * (len(others) + 1)
    for word in words:
        before = longest
        longest = [0]
        for column, other in enumerate(others):
            longest.append(
                before[column] + 1 if word == other else max(before[column + 1], longest[column])
            )
    return longest[-1], -len(words)


def _words(name: str) -> list[str]:
    """The words of a name.

    >>> _words("lora_unet_conv.down:0")
    ['lora', 'unet', 'conv', 'down']
    """
    return re.findall(r"[^./_-]+", bare(name))
