"""How a converted model compares with the model that it was made from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from convattn.networks.transformation.contents import is_opaque
from convattn.operators.arrays import is_traced

_VERDICTS = {
    True: "",
    False: "; FAILED: beyond a derived bound, or not finite",
    None: "; not judged (neither passed nor failed): no derived bound says something of all of it",
}
ROOT = 2.0**-11.5  # √ε of float32: no bound, but what a wrong network exceeds
NUMBERS = jax.Array | np.ndarray | np.number | np.bool_ | complex | float | int


@dataclass(frozen=True)
class LayerReport:
    """One converted layer.

    Attributes:
        path: Where it stands in the model, such as `"blocks.0.conv"`.
        heads: Of each group of channels.
        groups: Of channels.
        difference: The largest between the layer and its convolution on the layer's own inputs, of
            all its calls, or None where these could not be seen: inside of a transformation such as
            `vmap`, or where the example does not reach the layer.
        bound: The derived bound on it; None also for the limit form, and for dtypes below float32.
        largest: The largest output of the convolution in absolute value; zero where its images are
            zeros, on which any kernel would give the same.
    """

    path: str
    heads: int
    groups: int
    difference: float | None
    bound: float | None
    largest: float | None = None

    @property
    def passed(self) -> bool | None:
        """Whether the difference is within the bound; None where one of them is not known.

        None also where zeros would be within it: where it is as large as the largest output, as it
        is where all outputs are zeros.
        """
        if self.difference is None or self.bound is None:
            return None
        if self.difference <= self.bound and self.bound >= _or_infinite(self.largest):
            return None
        return self.difference <= self.bound

    def __str__(self) -> str:
        """One line."""
        groups = f" × {self.groups} groups" if self.groups > 1 else ""
        difference, bound = number(self.difference), number(self.bound)
        failed = "  FAILED" if self.passed is False else ""
        return f"{self.heads} heads{groups}  difference {difference}  bound {bound}{failed}"


class Measured(NamedTuple):
    """One call of a convolution beside its attention; see `LayerReport`."""

    difference: float | None
    bound: float | None
    largest: float | None


def reported(path: str, heads: int, groups: int, calls: Sequence[Measured]) -> LayerReport:
    """The line of a layer: of a call that is not within its bound, or whose bound says nothing.

    >>> reported("stem", 10, 1, [Measured(0.5, 1.0, 9.0), Measured(0.25, 0.125, 1.0)]).passed
    False
    """
    lines = [LayerReport(path, heads, groups, *call) for call in calls]
    for verdict in (False, None):
        for line in lines:
            if line.passed is verdict and line.bound is not None and line.difference is not None:
                return line
    differences, bounds, sizes = (
        ([number for number in column if number is not None] for column in zip(*calls, strict=True))
        if calls
        else ([], [], [])
    )
    return LayerReport(
        path,
        heads,
        groups,
        float(np.max(differences)) if differences else None,  # not a number, if one is not
        max(bounds) if bounds and len(bounds) == len(calls) else None,
        max(sizes, default=None),
    )


@dataclass(frozen=True)
class RecoveredLayer:
    """One layer that went back to a convolution.

    Attributes:
        path: Where it stands in the model.
        distance: The largest difference of the outputs, relative to the largest output of the
            layer.
        elsewhere: The same on a random image of `image_size`, which is another size than that of
            the example, since a layer may be a convolution at one size alone.
        uniform: The part of the layer that every output takes from the mean of the whole image,
            relative to the kernel, both in the Frobenius norm. No convolution has one. Of an exact
            layer that was not trained, the uniform head cancels it up to rounding.
        on_own_inputs: Whether the distance is that on all inputs that the layer has in the model;
            else it is that on a random image: without an example, or where the inputs could not be
            seen or were zeros, which tell nothing.
    """

    path: str
    distance: float
    uniform: float
    on_own_inputs: bool = False
    elsewhere: float | None = None
    image_size: tuple[int, ...] = ()

    def __str__(self) -> str:
        """One line."""
        line = f"distance {self.distance:.2e}"
        if not self.on_own_inputs:
            line += " on a random image"
        if self.on_own_inputs and self.elsewhere is not None:
            line += f", {self.elsewhere:.2e} on a random image"
        if self.image_size:
            line += f" of {' × '.join(map(str, self.image_size))} pixels"
        if self.uniform > 1e-6:
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
        left: The convolutions that the model still computes, one line each, and what is not seen
            into and may hold some, such as callbacks; None where it could not be traced. What a
            function of PyTorch convolves in a thread of Python's, outside of all modules, is not
            seen.
        entries: Of some entries of the outputs, those that differ most and the largest, the
            difference and the derived bound on it; empty where there is none.
        without_rule: What no bound is derived for, such as a primitive; None where there is one.
        rest_is_same: Whether the outputs are the same to the last bit if each layer is given the
            outputs of its convolution, so that the model differs by its layers alone; None where
            that was not tried. It is not where the model computes with the parameters of a layer.
    """

    layers: tuple[LayerReport, ...] | tuple[RecoveredLayer, ...]
    difference: float | None = None
    largest: float | None = None
    same_class: bool | None = None
    left: tuple[str, ...] | None = ()
    entries: tuple[tuple[float, float], ...] = ()
    without_rule: str | None = None
    rest_is_same: bool | None = None

    @property
    def bound(self) -> float | None:
        """The largest derived bound on an entry of the outputs that was looked at."""
        return max((bound for _, bound in self.entries), default=None)

    @property
    def _beyond(self) -> int:
        """How many entries exceed their bounds, or are not numbers."""
        return sum(not difference <= bound for difference, bound in self.entries)

    @property
    def passed(self) -> bool | None:
        """Whether all differences are within derived bounds.

        False where a layer or an entry exceeds its bound, or an output is not finite. True where
        every layer is within its bound, and so are the entries, or the rest of the model is the
        same and the outputs are near, within √ε of the largest. None else: nothing became
        attention; something has no bound, as layers of the limit form or below float32, layers
        whose inputs could not be seen, and those that went back to convolutions; a bound is as
        large as the largest output, as it is where an example of zeros gives zeros, in a layer or
        at the end; or the function jumps, and its program differs by more than the two runs that
        are bounded.

        All this is said of the example alone. Of a model of modules whose kernels follow an
        argument or the input, and on the example are those that it holds, attention does not.
        """
        layers = [getattr(layer, "passed", None) for layer in self.layers]
        finite = self.difference is None or bool(np.isfinite(self.difference))
        if not finite or False in layers or self._beyond:
            return False
        if self.entries and (self.bound or 0.0) >= _or_infinite(self.largest):
            return None  # zeros would be within such a bound
        if self.entries and (self.difference or 0.0) > (self.bound or 0.0):
            return (
                None  # the program that is delivered differs by more than the one that is bounded
            )
        near = (self.difference or 0.0) <= ROOT * (self.largest or 0.0)
        outputs = bool(self.entries) or (self.rest_is_same and near) or self.difference == 0
        return True if outputs and layers and None not in layers else None

    def __str__(self) -> str:
        """One line for each layer, one for the model, and one for what is left."""
        width = max((len(layer.path) for layer in self.layers), default=0)
        lines = [f"{layer.path:<{width}}  {layer}" for layer in self.layers]
        if self.difference is None or self.largest is None:
            lines.append(f"{len(lines)} layers; the outputs were not compared")
        else:
            classes = "the same classes" if self.same_class else "OTHER CLASSES"
            total = f"{len(lines)} layers; the outputs differ by {self.difference:.2e} at most, of "
            lines.append(f"{total}{self.largest:.3g}: {classes}{_VERDICTS[self.passed]}")
        if self.entries:
            beyond = sum(not difference <= bound for difference, bound in self.entries)
            most = max(self.entries, key=lambda entry: entry[0] / max(entry[1], 1e-300))
            verdict = f"{beyond} BEYOND their bounds" if beyond else "within their bounds"
            lines.append(
                f"{len(self.entries)} outputs, the largest and those that differ most: {verdict} "
                f"(derived, at most {self.bound:.2e}); the nearest to its bound differs by "
                f"{most[0]:.2e} of {most[1]:.2e}"
            )
        elif self.without_rule is not None:
            lines.append(f"no bound on the outputs: none for {self.without_rule}")
        zeros = [layer.path for layer in self.layers if getattr(layer, "largest", None) == 0]
        if zeros or self.largest == 0:
            paths = ", ".join(zeros) or "the model"
            lines.append(
                f"zeros tell nothing: the images or the outputs of {paths} are all zeros on this "
                "example; give another one, such as noise"
            )
        if self.left is None:
            lines.append("the model could not be traced, so convolutions in functions are not seen")
        else:
            unseen = [line for line in self.left if is_opaque(line)]
            left = [line for line in self.left if line not in unseen]
            if left:
                words = "convolution is" if len(left) == 1 else "convolutions are"
                lines.append(f"{len(left)} {words} left, not converted: {', '.join(left)}")
            if unseen:
                lines.append(f"what may hold convolutions: {', '.join(unseen)}")
        return "\n".join(lines)


def _or_infinite(value: float | None) -> float:
    return float("inf") if value is None else value


def largest_output(images: Any, outputs: Any) -> float:
    """The largest output; zero where all images are zeros, whatever the bias is."""
    return largest([outputs]) if largest([images]) != 0 else 0.0


def number(value: float | None) -> str:
    """A number of a report, or a dash."""
    return "-" if value is None else f"{value:.2e}"


def output_difference(expected: Any, result: Any) -> tuple[float, float, bool] | None:
    """The largest difference of all outputs, the largest output, and whether classes agree.

    None where the outputs are traced.
    """
    compared = output_differences(expected, result)
    if compared is None:
        return None
    differences, sizes, same = zip(*compared, strict=True)
    return float(np.max(differences)), float(np.max(sizes)), all(same)


def output_differences(expected: Any, result: Any) -> list[tuple[float, float, bool]] | None:
    """The same of each output."""
    leaves = list(zip(jax.tree.leaves(expected), jax.tree.leaves(result), strict=True))
    for leaf, _ in leaves:
        if not isinstance(leaf, NUMBERS | str):
            raise ValueError(
                f"the model gives a {type(leaf).__name__} on the example, which is not compared, "
                "but expected arrays and numbers in tuples, lists, dictionaries or other pytrees; "
                "give call=, a function of the model that returns these"
            )
    both = [pair for pair in leaves if isinstance(pair[0], NUMBERS) and not _is_key(pair[0])]
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
    return [
        (
            largest([np.subtract(a, b, where=a != b, out=np.zeros_like(a))]),  # of infinities, too
            largest([a]),
            not (a.size and a.ndim) or bool((a.real.argmax(-1) == b.real.argmax(-1)).all()),
        )
        for a, b in pairs
    ]


def _is_key(array: Any) -> bool:
    """Whether an array holds keys of random numbers."""
    return jnp.issubdtype(getattr(array, "dtype", bool), jax.dtypes.prng_key)


def largest(arrays: Sequence[Any]) -> float:
    """The largest entry in absolute value; not a number if one is not."""
    return float(np.max([np.abs(np.asarray(array)).max(initial=0) for array in arrays]))
