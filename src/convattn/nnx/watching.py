"""A model whose layers note their calls, or give the outputs that others noted."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import jax
from flax import nnx
from jax import Array

from convattn.networks.transformation.report import output_difference
from convattn.operators.arrays import is_traced


class LayerCall(NamedTuple):
    """One call of a layer.

    Attributes:
        layer: That was called: in a compiled part or a step of a scan another than the model holds.
        inputs, outputs: Arrays with values.
    """

    layer: Any
    inputs: Array
    outputs: Array


class Watch:
    """The calls of layers, from now on.

    Attributes:
        modules: By path.
        calls: By path; those of a module that stands at two are the same list.
        unseen: The paths of modules that were called where arrays have no values.
    """

    def __init__(self, modules: Mapping[str, Any]) -> None:
        lists: dict[int, list[LayerCall]] = {id(module): [] for module in modules.values()}
        self.modules = modules
        self.calls = {path: lists[id(module)] for path, module in modules.items()}
        self.unseen: set[str] = set()
        kinds = {kind: self.watched(kind) for kind in set(map(type, modules.values()))}
        for path, module in modules.items():
            module.__class__ = kinds.get(type(module), type(module))  # one may stand at two paths
            module.watched_path = path  # a copy of the module, made for a compiled part, has it too

    def watched(self, kind: Any) -> Any:
        """A kind of layers that note each call."""
        watch = self

        class Watched(kind):
            """Notes each call."""

            def __call__(self, inputs: Array, *args: Any, **named: Any) -> Array:
                path = self.watched_path
                if inputs.shape[-1] != getattr(self, "in_features", inputs.shape[-1]):
                    raise ValueError(
                        f"{path or 'the model'}: inputs.shape={inputs.shape}, but expected "
                        f"{self.in_features} channels in the last axis; give an example as the "
                        "model is called with"
                    )
                outputs = super().__call__(inputs, *args, **named)
                watch.note(path, self, inputs, outputs)
                return outputs

        return Watched

    def note(self, path: str, layer: Any, inputs: Array, outputs: Array) -> None:
        """A call of a layer."""
        if is_traced([inputs, outputs]):
            self.unseen |= {
                other for other, calls in self.calls.items() if calls is self.calls[path]
            }
            return
        if layer is not self.modules[path]:
            layer = nnx.clone(layer)
            layer.__class__ = type(layer).__base__
        self.calls[path].append(LayerCall(layer, inputs, outputs))

    def end(self) -> None:
        """Note no more."""
        for module in {id(module): module for module in self.modules.values()}.values():
            module.__class__ = type(module).__base__


class Observed(NamedTuple):
    """A model that ran while its layers were watched.

    Attributes:
        watch: Their calls.
        mode: Makes the context in which all of them have values, where there is one.
    """

    watch: Watch
    mode: Callable[[], Any]

    def calls(self, path: str) -> list[LayerCall] | None:
        """All calls of a layer; None where there are none, or some were not seen."""
        return None if path in self.watch.unseen else self.watch.calls.get(path) or None


def observed(
    model: Any, layers_of: Callable[[Any], Mapping[str, Any]], run: Callable[[Any], Any]
) -> Observed:
    """Run copies of a model: as it is, and, where layers are compiled, step by step.

    Args:
        layers_of: The modules of a copy, by path.
        run: Calls a model.
    """
    observation: Observed | None = None
    for mode in (nullcontext, jax.disable_jit):
        copy = nnx.List([nnx.clone(model)])
        watch = Watch(layers_of(copy))
        try:
            with mode():
                run(copy[0])
        except Exception:
            if observation is None:
                raise
            break  # a model that does not run step by step was seen as far as it can be
        finally:
            watch.end()
        observation = Observed(watch, mode)
        if not watch.unseen or is_traced([nnx.state(model)]):
            break
    assert observation is not None
    return observation


def rest_is_same(
    model: Any,
    expected: Any,
    attention: Any,
    layers_of: Callable[[Any], Mapping[str, Any]],
    observation: Observed,
    run: Callable[[Any], Any],
) -> bool | None:
    """Whether a model gives the same outputs with other layers that give the noted outputs.

    None where not all calls were seen, or it calls its layers otherwise.

    Args:
        model: In which they were noted.
        expected: What it gives as it is; it runs again where they were noted step by step.
        attention: Its copy with other layers.
        layers_of: The other layers of a copy, by path.
    """
    if observation.watch.unseen:
        return None
    copy = nnx.List([nnx.clone(attention)])
    left = {id(calls): iter(calls) for calls in observation.watch.calls.values()}
    following = {path: left[id(calls)] for path, calls in observation.watch.calls.items()}
    for path, layer in layers_of(copy).items():
        layer.watched_path = path
        layer.__class__ = _replaying(type(layer), following)
    try:
        with observation.mode():
            if observation.mode is not nullcontext:
                expected = run(nnx.clone(model))
            compared = output_difference(expected, run(copy[0]))
    except Exception:
        return None
    return None if compared is None else compared[0] == 0


def _replaying(kind: Any, following: Mapping[str, Iterator[LayerCall]]) -> Any:
    """A kind of layers that give the outputs that were noted, by path, one after the other."""

    class Replaying(kind):
        """Gives what was noted."""

        def __call__(self, inputs: Array, *args: Any, **named: Any) -> Array:
            call = next(following[self.watched_path], None)
            if call is None:
                raise ValueError("more calls than were noted")
            return call.outputs

    return Replaying
