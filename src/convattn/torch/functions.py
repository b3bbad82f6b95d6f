"""`function_of`: a module of PyTorch as a pure function of JAX.

The module's own code runs on torchax's tensors, which hold JAX arrays and may be traced. So
nothing of it is translated, and `convattn.with_attention` sees every convolution that it calls.

torchax changes global settings when it is imported, and modes while it runs. The settings are put
back, and the modes last as long as one call. PyTorch's device `privateuseone`, which can be named
once, stays `jax`; it is said not to be available, as `torch.compile` would ask it for its streams.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import jax
import torch
from jax import Array

from convattn.extras import require
from convattn.operators.arrays import as_array
from convattn.torch.operators import correct

TELEMETRY, CLIENT_OPTIONS = "ENABLE_RUNTIME_UPTIME_TELEMETRY", "jax_pjrt_client_create_options"


class ModuleFunction:
    """A module in evaluation mode as a function of JAX; from `function_of`.

    Attributes:
        parameters: Parameters and buffers by the names of the module, as JAX arrays.
        module: The module. It is left as it is, and what becomes of its parameters later does not
            change the function.
    """

    def __init__(self, module: torch.nn.Module, parameters: dict[str, Array]) -> None:
        self.module, self.parameters = module, parameters
        self.__name__ = type(module).__name__

    def __call__(self, *inputs: Any) -> Any:
        """The outputs with the parameters that the module had."""
        return self.apply(self.parameters, *inputs)

    def apply(self, parameters: dict[str, Array], *inputs: Any) -> Any:
        """The outputs as a function of the parameters too, to be differentiated and trained.

        Args:
            parameters: Arrays by the names in `self.parameters`.
            inputs: Arrays as the module takes tensors, images `[batch, channels, height, width]`;
                what are no arrays is passed on.

        Returns:
            What the module gives, JAX arrays in place of tensors.

        Raises:
            NotImplementedError: For an operator that torchax has not, with its name.
            ValueError: For a symbolic size, which torchax takes for 1, and for a module that holds
                tensors otherwise than as parameters, buffers and attributes.
        """
        _require_evaluation(self.module)
        shapes = [leaf.shape for leaf in jax.tree.leaves(inputs) if hasattr(leaf, "shape")]
        if any(not isinstance(size, int) for shape in shapes for size in shape):
            raise ValueError(
                f"{self.__name__}: inputs of shapes {shapes}, but expected numbers: modules of "
                "PyTorch read sizes as numbers; export the function for images of one shape"
            )
        if missing := [name for name in self.parameters if name not in parameters]:
            raise ValueError(
                f"parameters has no {missing[0]!r}, but expected the names of self.parameters; "
                "give all of them, as in {**function.parameters, ...}"
            )
        torchax = load_torchax()
        environment = torchax.tensor.Environment()
        environment.manual_seed(0)
        correct(environment)
        inputs = tuple(_as_jax(value, "inputs") for value in inputs)
        tensors, inputs = environment.j2t_iso((dict(parameters), inputs))
        with ExitStack() as stack:
            stack.enter_context(_no_fast_path())
            stack.enter_context(_name_scopes(self.module))
            stack.enter_context(torch.no_grad())
            stack.enter_context(environment)
            try:
                outputs = torch.func.functional_call(self.module, tensors, inputs)
            except torchax.tensor.OperatorNotFound as error:
                raise NotImplementedError(
                    f"{self.__name__}: {error} in torchax; convert the model with "
                    "convattn.torch.to_attention, which stays in PyTorch"
                ) from error
            except AssertionError as error:
                if "torch.Tensor" not in str(error):
                    raise
                raise ValueError(
                    f"{self.__name__} computes with a tensor that is no parameter, buffer or "
                    "attribute of a module, such as one in a list; register it with register_buffer"
                ) from error
        return environment.t2j_iso(outputs)


def function_of(module: torch.nn.Module) -> ModuleFunction:
    """A module of PyTorch as a pure function of JAX.

    Args:
        module: In evaluation mode, with its parameters on any device.

    Returns:
        `function(*inputs)`, with the module's parameters; `function.apply(parameters, *inputs)`
        with others of their names; and `function.parameters`. Inputs and outputs are laid out as
        in PyTorch, images `[batch, channels, height, width]`. Convolutions have the names of their
        modules and of PyTorch's operator. It can be compiled, differentiated, batched and exported.

    Raises:
        ValueError: For what is no module, a compiled script, a module in training mode, and for
            float64 while 64-bit types are off. `ModuleNotFoundError` without torchax.

    >>> import jax.numpy as jnp, convattn as ca
    >>> net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, stride=2), torch.nn.ReLU()).eval()
    >>> function = function_of(net)
    >>> images = jnp.ones((1, 3, 9, 9))
    >>> layers, apply, report = ca.attention_of(function, images)
    >>> list(layers), report.passed
    (['0/aten::convolution'], True)
    """
    module = plain_module(module, "module")
    _require_evaluation(module)
    load_torchax()
    return ModuleFunction(
        module, {name: _as_jax(tensor, name) for name, tensor in _tensors_of(module)}
    )


def plain_module(module: Any, name: str) -> torch.nn.Module:
    """A module as it was before `torch.compile`."""
    module = getattr(module, "_orig_mod", module)
    if not isinstance(module, torch.nn.Module) or isinstance(module, torch.jit.ScriptModule):
        kind = module.__name__ if isinstance(module, type) else type(module).__name__
        remedy = "call the class" if isinstance(module, type) else "give the model itself"
        raise ValueError(f"{name} is {kind}, but expected a torch.nn.Module in Python; {remedy}")
    return module


def _require_evaluation(module: torch.nn.Module) -> None:
    """Refuse a module that is training, whose calls would change its statistics."""
    for name, submodule in module.named_modules():
        if submodule.training:
            what = name or type(module).__name__
            raise ValueError(
                f"{what} is in training mode, but expected evaluation; call module.eval()"
            )


def _tensors_of(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters, buffers and tensors that are plain attributes, by name; shared ones once."""
    yield from module.named_parameters()
    yield from module.named_buffers()
    for prefix, submodule in module.named_modules():
        for name, value in vars(submodule).items():
            if isinstance(value, torch.Tensor):
                yield f"{prefix}.{name}" if prefix else name, value


def _as_jax(value: Any, name: str) -> Any:
    """A tensor or array as a JAX array, without losing bits; other values as they are."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach().cpu().contiguous()
        if tensor.dtype == torch.bfloat16:
            return as_array(tensor.float().numpy(), name).astype("bfloat16")
        value = tensor.numpy()
    if not hasattr(value, "dtype"):
        return value
    return jax.numpy.asarray(value) if value.dtype == bool else as_array(value, name)


@cache
def load_torchax() -> Any:
    """torchax, imported without what its import changes elsewhere."""
    require("torchax")
    telemetry = os.environ.get(TELEMETRY)
    options = getattr(jax.config, CLIENT_OPTIONS, None)
    fast_path = torch.backends.mha.get_fastpath_enabled()
    try:
        import torchax
        import torchax.device_module
        import torchax.tensor

        torchax.device_module.is_available = lambda: False
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)
        if hasattr(jax.config, CLIENT_OPTIONS):
            jax.config.update(CLIENT_OPTIONS, options)
        if telemetry is None:
            os.environ.pop(TELEMETRY, None)
    return torchax


@contextmanager
def _no_fast_path() -> Iterator[None]:
    """Without the fused kernels of `torch.nn.TransformerEncoderLayer`, which torchax has not."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


@contextmanager
def _name_scopes(module: torch.nn.Module) -> Iterator[None]:
    """Calls of the parts of a module stand in a name scope of JAX, each by its own name."""
    scopes: list[Any] = []
    handles = []

    def entering(name: str) -> Callable[..., None]:
        def enter(*_: Any) -> None:
            scopes.append(jax.named_scope(name))
            scopes[-1].__enter__()

        return enter

    def leave(*_: Any) -> None:
        scopes.pop().__exit__(None, None, None)

    try:
        named: set[int] = set()
        for submodule in module.modules():
            for name, child in submodule.named_children():
                if id(child) in named:
                    continue
                named.add(id(child))
                handles.append(child.register_forward_pre_hook(entering(name), prepend=True))
                handles.append(child.register_forward_hook(leave, always_call=True))
        yield
    finally:
        while scopes:
            leave()
        for handle in handles:
            handle.remove()
