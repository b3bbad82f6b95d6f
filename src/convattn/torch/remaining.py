"""The convolutions that a model computes and does not hold as modules: of functions and scripts."""

import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.utils._python_dispatch import TorchDispatchMode

from convattn.torch.attention_conv import AttentionConv

_CONVOLVES = re.compile("conv(?!ert)")  # in the names of operators


class Functions(TorchDispatchMode):
    """Which convolutions run in a thread that are those of no module that is known.

    Attributes:
        lines: One for each kernel and module that calls it.
        callers: The paths of the modules that are being called; None for those that are known.
    """

    def __init__(self, lines: dict[str, None], *callers: str) -> None:
        super().__init__()
        self.lines = lines
        self.callers: list[str | None] = [*callers]

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if _CONVOLVES.search(function._schema.name) and None not in self.callers:
            kernel = getattr(args[1], "shape", None) if len(args) > 1 else None
            size = "" if kernel is None else f", kernel {tuple(kernel)}"
            self.lines[f"{self.callers[-1] or 'the model'}: a function's{size}"] = None
        return function(*args, **kwargs or {})


@contextmanager
def convolving_functions(model: torch.nn.Module, left: dict[str, str]) -> Iterator[dict[str, None]]:
    """The convolutions that functions compute while the model runs, one line each.

    Compiled scripts are read, as what runs of them is not what they hold; in other threads than
    this one functions are seen where a module calls them.
    """
    lines: dict[str, None] = {}
    here = threading.local()
    here.mode = Functions(lines, "")

    paths: dict[int, str | None] = {}  # None for modules that are known
    scripts: list[str] = []
    for path, module in model.named_modules():
        if any(path.startswith(f"{script}.") for script in scripts):
            continue
        if isinstance(module, torch.jit.ScriptModule):
            scripts.append(path)
            lines |= dict.fromkeys(_of_script(path, module))
        known = path in (*left, *scripts) or isinstance(module, AttentionConv)
        paths[id(module)] = None if known else path

    def enter(module: Any, *_: Any) -> None:
        if id(module) not in paths:
            return
        if not hasattr(here, "mode"):
            here.mode = Functions(lines)
        if not here.mode.callers:
            here.mode.__enter__()
        here.mode.callers.append(paths[id(module)])

    def leave(module: Any, *_: Any) -> None:
        if id(module) not in paths:
            return
        here.mode.callers.pop()
        if not here.mode.callers:
            here.mode.__exit__(None, None, None)

    with ExitStack() as stack:  # hooks of all modules, as scripts have none of their own
        stack.callback(register_module_forward_pre_hook(enter).remove)
        stack.callback(register_module_forward_hook(leave, always_call=True).remove)
        stack.enter_context(here.mode)
        yield lines


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
        for inner in node.blocks():
            yield from nodes(inner)
