"""The ways in which a mixing step is run: folded, as attention, or as the model that was trained.

Each says how far it can be from the exact folded convolution: `local_errors.py`.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import numpy as np
from jax import Array

from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.networks.local_errors import (
    LocalError,
    leak_of,
    of_attention,
    of_products,
)
from convattn.networks.steps import (
    Convolution,
    Network,
    Residual,
    Values,
    apply_step,
    attend,
    convolve,
)
from convattn.operators.roundoff import unit_roundoff

# Compiled in half the time, for what is run once or twice.
SOON: dict[str, str | bool] = {"xla_backend_optimization_level": "0"}
MARGIN = 16  # more keys than offsets, from where the bound covers the back end `shift`


class Runner(Protocol):
    """A way to run the convolutions of a folded network."""

    def apply(self, step: Convolution, images: Values) -> Array:
        """The step's output."""
        ...

    def error(self, step: Convolution, images: Values) -> LocalError:
        """How far that can be from the exact folded convolution."""
        ...


@dataclass(frozen=True)
class FoldedRun:
    """The folded convolution itself."""

    def apply(self, step: Convolution, images: Values) -> Array:
        """W * x + b."""
        return convolve(step.kernel, step.bias, images, step.stride)

    def error(self, step: Convolution, images: Values) -> LocalError:
        """How far that can be from exact."""
        return of_products(step, unit_roundoff(images.dtype))


@dataclass(frozen=True)
class AttentionRun:
    """Attention layers.

    Attributes:
        layers: By name.
    """

    layers: dict[str, AttentionLayer]

    def apply(self, step: Convolution, images: Values) -> Array:
        """The layer of that name, by the back end that the bound covers."""
        layer = self.layers[step.name]
        program = attend_soon if few(images) else attend
        return program(layer, images, covered_backend(layer, images))

    def error(self, step: Convolution, images: Values) -> LocalError:
        """How far that can be from the exact folded convolution.

        Raises:
            ValueError: As `of_attention` does.
        """
        return of_attention(step, self.layers[step.name], images)


def covered_backend(layer: AttentionLayer, images: Values) -> str:
    """`"shift"` where T + 16 ≤ N and N(1/ε - 1) ≥ 1, else `"dense"`.

    >>> import convattn as ca, jax.numpy as jnp
    >>> layer = ca.conv_to_attention(jnp.ones((3, 3, 1, 1)))
    >>> [covered_backend(layer, jnp.ones((1, n, n, 1))) for n in (2, 3)]
    ['dense', 'shift']
    """
    keys, leak = layer.token_grid(images.shape[1:-1]).number_of_keys, leak_of(layer)
    offsets: Any = layer.encoding
    enough = len(offsets.offsets) + MARGIN <= keys and keys * (1 / leak - 1) >= 1
    return "shift" if enough else "dense"


def run_network(network: Network, run: Runner, images: Array) -> Array:
    """A folded network, its convolutions run in one of the three ways, step by step.

    >>> import jax.numpy as jnp
    >>> from convattn.networks.steps import Mean
    >>> network = (Convolution(jnp.ones((3, 3, 1, 2)), jnp.zeros(2)), Mean())
    >>> run_network(network, FoldedRun(), jnp.ones((1, 2, 2, 1))).tolist()
    [[4.0, 4.0]]
    """
    found = images
    for step in network:
        if isinstance(step, Convolution):
            found = run.apply(step, found)
        elif isinstance(step, Residual):
            found = run_network(step.branch, run, found) + run_network(step.shortcut, run, found)
        else:
            found = apply_step(step, found)
    return found


def few(images: Values) -> bool:
    """Whether programs are run a few times alone: in float64, in which whole sets are not run.

    >>> few(np.ones((10, 32, 32, 3))), few(np.ones((10, 32, 32, 3), np.float32))
    (True, False)
    """
    return images.dtype == np.float64


def _attended(layer: AttentionLayer, images: Values, backend: str) -> Array:
    return apply_attention(layer, images, backend=backend)


attend_soon = jax.jit(_attended, static_argnames="backend", compiler_options=SOON)
