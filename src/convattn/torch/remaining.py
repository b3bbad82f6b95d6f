"""The convolutions that a model computes and does not hold as modules: of functions and scripts."""

import math
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.utils._python_dispatch import TorchDispatchMode

from convattn.torch.attention_conv import AttentionConv

_CONVOLVES = re.compile("conv(?!ert)")  # in the names of operators


@dataclass
class Caller:
    """A module that is being called.

    Attributes:
        path: Where it stands in the model.
        known: How many convolutions of its own, not of modules in it, are known and not counted.
        is_whole: Whether none that runs inside of it is counted.
    """

    path: str
    known: float = 0
    is_whole: bool = False


class Functions(TorchDispatchMode):
    """Which convolutions run in a thread that are those of no module that is known.

    Attributes:
        counts: How many run, by module that calls them and shape of the kernel.
        callers: The modules that are being called, the innermost last.
    """

    def __init__(self, counts: Counter[str], *callers: Caller) -> None:
        super().__init__()
        self.counts = counts
        self.callers = [*callers]

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        is_whole = any(caller.is_whole for caller in self.callers)
        if _CONVOLVES.search(function._schema.name) and not is_whole:
            caller = self.callers[-1]
            if caller.known:
                caller.known -= 1
            else:
                kernel = getattr(args[1], "shape", None) if len(args) > 1 else None
                size = "" if kernel is None else f", kernel {tuple(kernel)}"
                self.counts[f"{caller.path or 'the model'}: a function's{size}"] += 1
        return function(*args, **kwargs or {})


@contextmanager
def convolving_functions(model: torch.nn.Module, left: dict[str, str]) -> Iterator[list[str]]:
    """The convolutions that functions compute while the model runs, one line for each that runs.

    Compiled scripts are read, as what runs of them is not what they hold; in other threads than
    this one functions are seen where a module calls them. Of a convolution that is left, one for
    each call is its own.

    Args:
        model: Run while the context is entered; the lines are there once it is left.
        left: Why the convolutions among its modules that stay are left, by path.
    """
    lines: list[str] = []
    counts = Counter[str]()
    here = threading.local()
    here.mode = Functions(counts, Caller(""))

    callers: dict[int, Caller] = {}
    scripts: list[str] = []
    for path, module in model.named_modules():
        if any(path.startswith(f"{script}.") for script in scripts):
            continue
        if isinstance(module, torch.jit.ScriptModule):
            scripts.append(path)
            lines.extend(_of_script(path, module))
        is_whole = path in scripts or isinstance(module, AttentionConv)
        known = 0.0
        if path in left:  # of complex numbers the real ones that it is made of
            weight = getattr(module, "weight", None)
            known = math.inf if weight is not None and weight.dtype.is_complex else 1
        callers[id(module)] = Caller(path, known, is_whole)

    def enter(module: Any, *_: Any) -> None:
        if id(module) not in callers:
            return
        if not hasattr(here, "mode"):
            here.mode = Functions(counts)
        if not here.mode.callers:
            here.mode.__enter__()
        here.mode.callers.append(replace(callers[id(module)]))

    def leave(module: Any, *_: Any) -> None:
        if id(module) not in callers:
            return
        here.mode.callers.pop()
        if not here.mode.callers:
            here.mode.__exit__(None, None, None)

    with ExitStack() as stack:  # hooks of all modules, as scripts have none of their own
        stack.callback(register_module_forward_pre_hook(enter).remove)
        stack.callback(register_module_forward_hook(leave, always_call=True).remove)
        stack.enter_context(here.mode)
        yield lines
    for line, count in counts.items():
        numbers = [f", {number} of {count}" for number in range(1, count + 1)]
        lines.extend(line + number for number in (numbers if count > 1 else [""]))


def _of_script(path: str, script: Any) -> Iterator[str]:
    """The convolutions of a compiled script, one line each."""
    kinds = [node.kind() for node in nodes(script.inlined_graph) if _CONVOLVES.search(node.kind())]
    for number, kind in enumerate(kinds, 1):
        yield (
            f"{path}: {kind} {number} of {len(kinds)} in a compiled script, which cannot be "
            "converted; put the module that it was made from in its place"
        )


def nodes(block: Any) -> Iterator[Any]:
    """The nodes of a block, and of the blocks that these hold."""
    for node in block.nodes():
        yield node
        for child_block in node.blocks():
            yield from nodes(child_block)
