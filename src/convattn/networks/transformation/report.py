"""How a converted model compares with the model that it was made from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from convattn.networks.transformation.convolution import Convolution, joined
from convattn.networks.transformation.evaluation import inner_jaxprs, is_convolution

NUMBERS = jax.Array | np.ndarray | np.number | np.bool_ | complex | float | int


@dataclass(frozen=True)
class LayerReport:
    """One converted layer.

    Attributes:
        path: Where it stands in the model, such as `"blocks.0.conv"`.
        heads: Of each group of channels.
        groups: Of channels.
        difference: The largest between the layer and its convolution on the layer's own inputs, of
            all its calls, or None where these could not be seen: inside a compiled part of the
            model, or where the example does not reach the layer.
        bound: The derived bound on it; None also for the limit form, and for dtypes below float32.
    """

    path: str
    heads: int
    groups: int
    difference: float | None
    bound: float | None

    @property
    def passed(self) -> bool | None:
        """Whether the difference is within the bound; None where one of them is not known."""
        if self.difference is None or self.bound is None:
            return None
        return self.difference <= self.bound

    def __str__(self) -> str:
        """One line."""
        groups = f" × {self.groups} groups" if self.groups > 1 else ""
        difference, bound = number(self.difference), number(self.bound)
        failed = "  FAILED" if self.passed is False else ""
        return f"{self.heads} heads{groups}  difference {difference}  bound {bound}{failed}"


@dataclass(frozen=True)
class RecoveredLayer:
    """One layer that went back to a convolution.

    Attributes:
        path: Where it stands in the model.
        distance: The largest difference of the outputs, relative to the largest output of the
            layer: on the layer's own inputs, or without an example on a random image.
        uniform: The part of the layer that every output takes from the mean of the whole image,
            relative to the kernel, both in the Frobenius norm. No convolution has one. Of an exact
            layer that was not trained, the uniform head cancels it up to rounding.
    """

    path: str
    distance: float
    uniform: float

    def __str__(self) -> str:
        """One line."""
        line = f"distance {self.distance:.2e}"
        if self.uniform > 1e-4:
            line += f"  the uniform head no longer cancels: {self.uniform:.2g} of the kernel"
        return line


@dataclass(frozen=True)
class Report:
    """How a model compares with the one that it was made from, on the example.

    Attributes:
        layers: In the order of their paths in the model.
        difference: The largest of all outputs; None without an example, and where the arrays are
            traced, as under `jax.eval_shape`.
        largest: The largest output in absolute value.
        same_class: Whether the largest entry of the last axis is the same everywhere.
        left: The convolutions that the model still computes, one line each; None where it could
            not be traced.
        entries: Of some entries of the outputs, those that differ most and the largest, the
            difference and the derived bound on it; empty where there is none.
        without_rule: What no bound is derived for, such as a primitive; None where there is one.
    """

    layers: tuple[LayerReport, ...] | tuple[RecoveredLayer, ...]
    difference: float | None = None
    largest: float | None = None
    same_class: bool | None = None
    left: tuple[str, ...] | None = ()
    entries: tuple[tuple[float, float], ...] = ()
    without_rule: str | None = None

    @property
    def bound(self) -> float | None:
        """The largest derived bound on an entry of the outputs that was looked at."""
        return max((bound for _, bound in self.entries), default=None)

    @property
    def passed(self) -> bool:
        """Whether no layer and no entry exceeds its bound, and the outputs are finite."""
        finite = self.difference is None or bool(np.isfinite(self.difference))
        inside = all(difference <= bound for difference, bound in self.entries)
        return (
            finite
            and inside
            and all(getattr(layer, "passed", None) is not False for layer in self.layers)
        )

    def __str__(self) -> str:
        """One line for each layer, one for the model, and one for what is left."""
        width = max((len(layer.path) for layer in self.layers), default=0)
        lines = [f"{layer.path:<{width}}  {layer}" for layer in self.layers]
        if self.difference is None or self.largest is None:
            lines.append(f"{len(lines)} layers; the outputs were not compared")
        else:
            classes = "the same classes" if self.same_class else "OTHER CLASSES"
            total = f"{len(lines)} layers; the outputs differ by {self.difference:.2e} at most, of "
            failed = "" if self.passed else "; FAILED: beyond a derived bound, or not finite"
            lines.append(f"{total}{self.largest:.3g}: {classes}{failed}")
        if self.entries:
            most = max(self.entries, key=lambda entry: entry[0] / max(entry[1], 1e-300))
            lines.append(
                f"{len(self.entries)} outputs, the largest and those that differ most, are within "
                f"{self.bound:.2e}, derived; the nearest to its bound differs by {most[0]:.2e} of "
                f"{most[1]:.2e}"
            )
        elif self.without_rule is not None:
            lines.append(f"no bound on the outputs: none for {self.without_rule}")
        if self.left is None:
            lines.append("the model could not be traced, so convolutions in functions are not seen")
        elif self.left:
            count = len(self.left)
            words = "convolution is" if count == 1 else "convolutions are"
            lines.append(f"{count} {words} left, not converted: {', '.join(self.left)}")
        return "\n".join(lines)


def number(value: float | None) -> str:
    """A number of a report, or a dash."""
    return "-" if value is None else f"{value:.2e}"


def output_difference(expected: Any, result: Any) -> tuple[float, float, bool] | None:
    """The largest difference of all outputs, the largest output, and whether classes agree.

    None where the outputs are traced.

    Raises:
        ValueError: Where the model gives no arrays, or something else beside them than strings and
            keys of random numbers.
    """
    leaves = list(zip(jax.tree.leaves(expected), jax.tree.leaves(result), strict=True))
    for leaf, _ in leaves:
        if not isinstance(leaf, NUMBERS | str):
            raise ValueError(
                f"the model gives a {type(leaf).__name__} on the example, which is not compared, "
                "but expected arrays and numbers in tuples, lists, dictionaries or other pytrees; "
                "give call=, a function of the model that returns these"
            )
    both = [pair for pair in leaves if isinstance(pair[0], NUMBERS) and not is_key(pair[0])]
    if not both:
        raise ValueError(
            f"the model gives {type(expected).__name__} on the example, but expected an array, or "
            "several in a tuple, list or dictionary"
        )
    if is_traced(both):
        return None
    kinds = [complex if any(map(jnp.iscomplexobj, pair)) else float for pair in both]
    pairs = [
        tuple(np.asarray(x).astype(kind) for x in pair)  # of 64 bits, whatever JAX has
        for pair, kind in zip(both, kinds, strict=True)
    ]
    classes = [(a.real.argmax(-1), b.real.argmax(-1)) for a, b in pairs if a.size and a.ndim]
    same = all(bool((a == b).all()) for a, b in classes)
    differences = [  # of infinities, too
        np.subtract(a, b, where=a != b, out=np.zeros_like(a)) for a, b in pairs
    ]
    return largest(differences), largest([a for a, _ in pairs]), same


def is_key(array: Any) -> bool:
    """Whether an array holds keys of random numbers."""
    return jnp.issubdtype(getattr(array, "dtype", bool), jax.dtypes.prng_key)


def is_traced(tree: Any) -> bool:
    """Whether an array of a tree has no value yet, as inside `jax.jit`."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(tree))


def largest(arrays: Sequence[Any]) -> float:
    """The largest entry in absolute value; not a number if one is not."""
    return float(np.max([np.abs(np.asarray(array)).max(initial=0) for array in arrays]))


def remaining_convolutions(function: Any, *arguments: Any) -> tuple[str, ...] | None:
    """The convolutions of a function that are not those of attention; None if it does not trace.

    >>> def blur(image): return jnp.convolve(image, jnp.ones(3))
    >>> remaining_convolutions(blur, jnp.ones(5))
    ('kernel (3, 1, 1)',)
    """
    try:
        traced = jax.make_jaxpr(lambda: function(*arguments))()
    except Exception:  # the model's own: what it does with values is not ours to know
        return None
    return tuple(_convolutions(traced.jaxpr))


def _convolutions(jaxpr: Any, name: str = "") -> Iterator[str]:
    for equation in jaxpr.eqns:
        if is_convolution(equation, name):
            yield f"kernel {Convolution.of(equation).kernel_shape}"
        for inner in inner_jaxprs(equation):
            yield from _convolutions(inner, joined(name, equation))
