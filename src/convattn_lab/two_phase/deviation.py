"""How far the logits of a network and of its conversion can lie apart: derived from two runs.

Both networks take the same tokens, and share all of their parameters but those of the mixings. So
the convolution network is run with two values for everything (`Recording`), and at each mixing the
second one becomes what the attention makes of it: the convolution of it, as computed, and an error
that is bounded at this input (`mixing_bound`). The identity of
`convattn.networks.transformation.deviation` turns these errors and all others into a bound on the
logits.

*Sharper, and first:* each layer's attention and convolution are given the same input, that of the
converted network, and must agree within that bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Float

from convattn.networks.transformation.attention import ConversionOptions
from convattn.networks.transformation.deviation import Step, Value
from convattn.networks.transformation.evaluation import Scope, Values
from convattn.networks.transformation.local_error import INFLATION
from convattn.networks.transformation.recording import Recording
from convattn.nnx.vision_transformer.model import VisionTransformer
from convattn_lab.two_phase.mixing_bound import (
    attention_bound,
    convolution_rounding,
    float64_mixing,
)
from convattn_lab.two_phase.settings import ConversionSettings

MIXING = "mixing "  # and the number of a layer: what its compiled part is called


@dataclass(frozen=True)
class LayerDeviation:
    """Attention and convolution of a layer at the same input.

    Attributes:
        seen: The largest difference of two entries.
        bound: The largest of the bounds.
        share: The largest difference in units of its own bound; at most 1 if nothing is wrong.
    """

    seen: float
    bound: float
    share: float


@dataclass(frozen=True)
class ConversionDeviation:
    """A network and its conversion, run on the same images in float32.

    Attributes:
        logits, other_logits: Of the convolution network, and of the attention network.
        entries: Of the logits that differ most and of the largest, the difference and its bound.
        layers: Each by itself.
        changed: The parameters besides the mixings that are not the same in both networks.
        without_rule: What there is no bound for; None where there is one.
    """

    logits: Float[np.ndarray, "batch classes"]
    other_logits: Float[np.ndarray, "batch classes"]
    entries: tuple[tuple[float, float], ...]
    layers: tuple[LayerDeviation, ...]
    changed: tuple[str, ...] = ()
    without_rule: str | None = None

    @property
    def difference(self) -> float:
        """The largest of two logits."""
        return float(np.abs(self.logits.astype(np.float64) - self.other_logits).max())

    @property
    def bound(self) -> float:
        """The largest bound on one of the entries."""
        return max((bound for _, bound in self.entries), default=float("inf"))

    @property
    def passed(self) -> bool:
        """Whether every layer and every entry is within its bound, and nothing else changed."""
        finite = bool(np.isfinite(self.logits).all() and np.isfinite(self.other_logits).all())
        layers = all(layer.share <= 1 for layer in self.layers)
        within = bool(self.entries) and all(gap <= bound for gap, bound in self.entries)
        return finite and layers and within and not self.changed


def deviation(
    one: VisionTransformer,
    two: VisionTransformer,
    images: Float[Array, "batch height width channels"],
    conversion: ConversionSettings,
) -> ConversionDeviation:
    """Run both networks, and bound how far they can lie apart.

    Args:
        one, two: Of the convolution phase, and what `transfer` made of it; computing in float32.
        images: float32.

    Raises:
        ValueError: For networks in another dtype.

    >>> from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
    >>> from convattn_lab.two_phase.settings import phase_two_settings
    >>> from convattn_lab.two_phase.transfer import transfer
    >>> sizes = {"depth": 1, "width": 12, "inner": 6, "patch_size": 2}
    >>> settings = VisionTransformerSettings("convolution", **sizes)
    >>> one = VisionTransformer(settings, classes=2, image_size=(4, 6), rngs=nnx.Rngs(0))
    >>> how = ConversionSettings("exact")
    >>> two = transfer(one, phase_two_settings(settings, how), how, rngs=nnx.Rngs(1))
    >>> found = deviation(one, two, jax.random.normal(jax.random.key(0), (2, 4, 6, 3)), how)
    >>> found.passed, found.bound < 1e-2
    (True, True)
    """
    images = jnp.asarray(images)
    for dtype in (one.dtype, two.dtype, images.dtype):
        if dtype != jnp.float32:
            raise ValueError(
                f"a network or the images are in {dtype}, but the bound is derived for float32; "
                "make both networks with dtype='float32'"
            )
    tokens = one.embedded(images)
    changed = [*_changed_parameters(one, two)]
    if not bool((two.embedded(images) == tokens).all()):
        changed.append("the tokens")
    mixings: Any = [layer.mixing for layer in one.layers]
    recording = Mixings(mixings, [layer.mixing for layer in two.layers], conversion)
    jaxpr = jax.make_jaxpr(_with_named_mixings(one))(tokens)
    (logits,) = recording.closed(jaxpr, [recording.argument(tokens)], Scope())
    bounds = recording.tape.bounds([logits])
    pairs = (
        ()
        if isinstance(bounds, str)
        else zip(*(numbers.tolist() for numbers in bounds), strict=True)
    )
    return ConversionDeviation(
        np.asarray(logits.left),
        np.asarray(logits.right),
        tuple(pairs),
        tuple(recording.layers),
        tuple(changed),
        bounds if isinstance(bounds, str) else None,
    )


def _changed_parameters(one: VisionTransformer, two: VisionTransformer) -> list[str]:
    """The parameters after the tokens, but for the mixings, that are not the same in both."""
    states = [dict(nnx.to_flat_state(nnx.state(model, nnx.Param))) for model in (one, two)]
    shared = [
        {path: np.asarray(leaf[...]) for path, leaf in state.items() if "mixing" not in path}
        for state in states
    ]
    return [
        ".".join(map(str, path))
        for path, array in shared[0].items()
        if path[0] in ("layers", "norm", "classifier")
        and (path not in shared[1] or array.tobytes() != shared[1][path].tobytes())
    ]


def _with_named_mixings(model: VisionTransformer) -> Any:
    """The function from tokens to logits, each mixing a compiled part with a name."""
    model = nnx.clone(model)
    layers: Any = model.layers
    for number, layer in enumerate(layers):
        layer.mixing = NamedMixing(number, layer.mixing)
    graph, state = nnx.split(model)

    def logits(tokens: Array) -> Array:
        merged = nnx.merge(graph, state)
        for layer in merged.layers:
            tokens = layer(tokens)
        return merged.classified(tokens)

    return logits


class NamedMixing(nnx.Module):
    """A mixing as a compiled part with the number of its layer in its name."""

    def __init__(self, number: int, mixing: Any) -> None:
        self.number, self.mixing = number, mixing

    def __call__(self, tokens: Array, dropout_key: Array | None = None) -> Array:
        """The mixing; it has no weights to drop."""
        graph, state = nnx.split(self.mixing)

        def mixed(state: Any, tokens: Array) -> Array:
            return nnx.merge(graph, state)(tokens)

        mixed.__name__ = f"{MIXING}{self.number}"
        return jax.jit(mixed)(state, tokens)


class Mixings(Recording):
    """Both runs, in which attention takes the place of each convolution of tokens.

    Attributes:
        layers: What was seen of each.
    """

    def __init__(
        self, convolutions: Sequence[Any], attentions: Sequence[Any], conversion: ConversionSettings
    ) -> None:
        super().__init__(ConversionOptions(where=lambda convolution: False), {})
        self.convolutions, self.attentions = convolutions, attentions
        self.conversion = conversion
        self.layers: list[LayerDeviation] = []

    def equation(self, equation: Any, values: Sequence[Value], scope: Scope) -> Values:
        """A mixing, or what it is otherwise."""
        name = str(equation.params.get("name", ""))
        if not name.startswith(MIXING):
            return super().equation(equation, values, scope)
        (convolved,) = self.closed(equation.params["jaxpr"], values, scope.inside(equation))
        return [self.mixed(int(name.removeprefix(MIXING)), values[-1].right, convolved)]

    def mixed(self, number: int, tokens: Array, convolved: Value) -> Value:
        """The convolution in one run, and attention in the other."""
        convolution, attention = self.convolutions[number], self.attentions[number]
        right = attention(tokens)
        construction_error = attention_bound(attention, convolution, tokens, self.conversion)
        with jax.enable_x64(True):
            wide = float64_mixing(convolution)
            rounded = np.asarray(convolution_rounding(wide, jnp.asarray(tokens, jnp.float64)))
        allowed = (construction_error + rounded) * INFLATION
        abs_diff = np.abs(np.asarray(right, np.float64) - np.asarray(convolved.right, np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            fractions = np.where(abs_diff == 0, 0.0, abs_diff / allowed)
        self.layers.append(
            LayerDeviation(float(abs_diff.max()), float(allowed.max()), float(np.max(fractions)))
        )
        result = Value(convolved.left, right, convolved.depends, convolved.loops)
        inputs = (convolved,) if convolved.differs else ()
        self.tape.steps.append(Step(inputs, (result,), (allowed,), lambda g: [g], 0.0, 0.0))
        return result
