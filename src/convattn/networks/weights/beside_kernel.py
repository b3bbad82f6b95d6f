"""What stands beside a kernel in a file and may change it: what is not known is refused.

Masks, gains, norms, adapters and quantisers are parameters beside the weight that is stored, or
around it, and the weight is not what the module computes with. Their names are without end. So

- in the kernel's own module, and in those inside it, only names that change nothing are taken: the
  bias, a norm with running statistics behind the convolution, the slots of an optimiser;
- in the module around it, what is named like an adapter or as a gain of the kernel, what has its
  shape or that of a gain of each output channel, `[out, 1, …]`, and, where there is no third
  module, what has the shape of a factor of the kernel or of a pair whose product has its size;
- anywhere else, as in a tree of masks beside that of the parameters, what is nearer to this kernel
  by its name than to others, and is a mask of zeros and ones, is named as a mask or an adapter, or
  stands below the kernel's own name, as a norm of it does.

Other modules of the module around it, such as the norm and the next convolution of a block, are
ordinary.
"""

import re
from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from convattn.networks.weights.names import bare, renamed
from convattn.networks.weights.other_trees import ADAPTER, SLOT, in_another_tree

_SEPARATOR = re.compile(r"[./]")
KERNEL = re.compile(r"(?P<stem>|.*[_-])(kernel|weight|filter|w)s?", re.IGNORECASE)
BIAS = re.compile(r"[_./-]?(b|bias|biases)", re.IGNORECASE)
_RUNNING = re.compile(r"(running|moving)_(mean|var|variance)")
_OF_A_NORM = re.compile(rf"weight|bias|gamma|beta|scale|num_batches_tracked|{_RUNNING.pattern}")
_OF_THE_KERNEL = re.compile(r"(log_)?(kernel|weight|filter)s?_\w*(gain|scal|mul|factor|norm|g)\w*")
_REMEDIES = {  # how a framework puts what it computes in the kernel's place, by what stands beside
    r"lora|loha|lokr|hada|dora|vera|ia3|oft": (
        "merge the adapter, as merge_and_unload() of PEFT and fuse_lora() of diffusers do"
    ),
    r"mask|scores": "multiply the kernel by the mask, as prune.remove of PyTorch does",
    r"quant|amax|scale|zero_point|observer|post_process": (
        "save the weights before they are quantised, or dequantised"
    ),
}


def changing(
    arrays: Mapping[str, np.ndarray],
    kernel: str,
    bias: str | None,
    channels: int,
    with_bias: bool = True,
) -> list[str]:
    """The names of what may change a kernel.

    Args:
        arrays: Of the file, by name; what is re-parametrised in a known way is computed, and empty
            arrays stand for what cannot be.
        kernel, bias: What the file calls them.
        channels: Of the convolution's output.
        with_bias: Whether the bias is the file's; else one of the user's takes its place.

    >>> kernel, row = np.ones((8, 4, 3, 3)), np.ones(8)
    >>> beside = {"bn.weight": row, "conv2.weight": kernel, "conv.gain": row, "conv.bias": row}
    >>> changing({"conv.weight": kernel, **beside}, "conv.weight", "conv.bias", 8)
    ['conv.gain']
    """
    real = renamed(arrays, lambda name: name.replace(".", "/"))
    named = {name: arrays[own] for name, own in real.items()}
    slashed = {own: name for name, own in real.items()}
    names = _changing(named, slashed[kernel], slashed.get(bias or ""), channels, with_bias)
    return [real[name] for name in dict.fromkeys(names)]


def _changing(
    arrays: Mapping[str, np.ndarray],
    kernel: str,
    bias: str | None,
    channels: int,
    with_bias: bool,
) -> Iterator[str]:
    """The same for names whose parts are joined by slashes alone."""
    start, last = _split(kernel)
    word = KERNEL.fullmatch(bare(last))
    stem = start + (word["stem"].rstrip("_-") if word else bare(last))
    others = {name: array for name, array in arrays.items() if name not in (kernel, bias)}
    own = {name: name[len(stem) :] for name in others if _is_inside(name, stem)}
    norms = {
        above
        for name, inside in own.items()
        for above, part in [_split(inside)]
        if above and _RUNNING.fullmatch(bare(part))
    }
    for name, inside in own.items():
        if not (
            (not with_bias and BIAS.fullmatch(bare(inside)))
            or SLOT.fullmatch(bare(inside))
            or (_split(inside)[0] in norms and _OF_A_NORM.fullmatch(bare(_split(inside)[1])))
            or _is_applied(arrays[kernel], others[name], inside)
        ):
            yield name
    elsewhere = {name: array for name, array in others.items() if name not in own}
    yield from in_another_tree(kernel, arrays[kernel], elsewhere)
    if stem == start and start:
        around, module = _split(start[:-1])
        beside = {name: name[len(around) :] for name in elsewhere if name.startswith(around)}
        yield from _of_the_wrapper(arrays[kernel], channels, module, beside, others)


def merge_hint(names: list[str]) -> str:
    """What to do about them, with the call of the framework that writes such names.

    >>> merge_hint(["conv.lora_a"])[:17]
    'merge the adapter'
    """
    for pattern, what in _REMEDIES.items():
        if any(re.search(pattern, name, re.IGNORECASE) for name in names):
            return what
    return (
        "put the kernel that the module computes with in the kernel's place, as "
        "torch.nn.utils.parametrize.remove_parametrizations does"
    )


def _of_the_wrapper(
    kernel: np.ndarray,
    channels: int,
    module: str,
    beside: Mapping[str, str],
    arrays: Mapping[str, np.ndarray],
) -> Iterator[str]:
    """What of the module around changes the kernel, by its names below that module."""
    first = {name: _SEPARATOR.split(bare(inside))[0] for name, inside in beside.items()}
    modules = {
        first[name]
        for name, inside in beside.items()
        if _split(inside)[0] and not ADAPTER.fullmatch(first[name])
    }
    large = [name for name in beside if arrays[name].ndim > 1]
    shapes = [arrays[name].shape for name in large]
    are_small = all(arrays[name].size == 1 for name in beside if name not in large)
    if len(large) == 2 and are_small and _is_pair(kernel.shape, *shapes):
        yield from large
        return
    for name, child in first.items():
        if child in modules:
            if module == "module":  # NNI's, and others' of what they wrap
                yield name
        elif any(child.startswith(f"{other}_") for other in modules):
            continue  # it is that module's
        elif (
            child.startswith(f"{module}_")
            or ADAPTER.fullmatch(child)
            or (_OF_THE_KERNEL.fullmatch(child) and child == bare(beside[name]))
            or (module == "module" and arrays[name].size != 1)
            or (child == bare(beside[name]) and _is_aligned(kernel, channels, arrays[name]))
            or (not modules and _is_factor(kernel, channels, arrays[name], bare(child)))
        ):
            yield name


def _is_factor(kernel: np.ndarray, channels: int, array: np.ndarray, name: str) -> bool:
    """Whether a parameter of the module around is as one that scales each channel, or the kernel.

    >>> kernel = np.ones((8, 4, 3, 3))
    >>> _is_factor(kernel, 8, np.ones((8, 1, 1, 1)), "s"), _is_factor(kernel, 8, np.ones(5), "s")
    (True, False)
    """
    if array.size in (0, kernel.size):
        return True
    if array.ndim <= 1:
        is_scale = array.shape == (channels,) != (1,) and not BIAS.fullmatch(name)
        return name in ("g", "u", "v") or is_scale
    is_aligned = array.ndim == kernel.ndim and all(
        side in (1, full) for side, full in zip(array.shape, kernel.shape, strict=True)
    )
    return is_aligned or array.shape == (channels, 1)


def _is_aligned(kernel: np.ndarray, channels: int, array: np.ndarray) -> bool:
    """Whether it has the kernel's shape, or that of a gain of each output channel, `[out, 1, …]`.

    >>> kernel = np.ones((8, 4, 3, 3))
    >>> [_is_aligned(kernel, 8, np.ones(shape)) for shape in ((8, 1, 1, 1), (8,), (1, 1, 1, 8))]
    [True, False, False]
    """
    gain = (channels, *(1,) * (kernel.ndim - 1))
    return array.shape == kernel.shape or (array.shape == gain and len(kernel) == channels > 1)


def _is_pair(kernel: tuple[int, ...], one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a product of two factors has the kernel's size, and they are smaller than it.

    >>> _is_pair((8, 4, 3, 3), (2, 4, 3, 3), (8, 2, 1, 1)), _is_pair((9, 9, 1), (9, 9), (9, 9, 1))
    (True, False)
    """
    sizes = prod(one), prod(other)
    return sum(sizes) < prod(kernel) and any(
        sizes[0] * sizes[1] == rank * rank * prod(kernel) for rank in {*one} & {*other}
    )


def _is_applied(kernel: np.ndarray, beside: np.ndarray, name: str) -> bool:
    """Whether it is a mask of zeros and ones that the kernel has already been multiplied by."""
    return "mask" in name and beside.shape == kernel.shape and not kernel[beside != 1].any()


def _is_inside(name: str, stem: str) -> bool:
    """Whether a tensor is of the module, or its name begins with the kernel's.

    >>> _is_inside("conv.gain", "conv."), _is_inside("conv1_scale", "conv1"), _is_inside("a", "")
    (True, True, True)
    """
    rest = name.removeprefix(stem)
    ends = not stem or stem[-1] in "./" or rest[:1] in ("_", "-", ".", "/")
    return name.startswith(stem) and ends


def _split(name: str) -> tuple[str, str]:
    """What stands before and after the last separator, the separator with the former."""
    at = max(name.rfind("."), name.rfind("/")) + 1
    return name[:at], name[at:]
