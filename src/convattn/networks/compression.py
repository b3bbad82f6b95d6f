"""A network under a budget of heads: S.approx, layer by layer.

Every convolution W is replaced by the layer that `approximate_convolution` finds for N heads: exact
up to rounding for N = K² (for 1 × 1 with one head), and with a squared error of Σ_(i≥N) σ_i² or
less below that, σ_i the singular values of the kernel flattened to K² columns. It is built at
stride 1; the stride is taken from its result.

*Distributing heads.* With H heads for all layers together, each gets one, and the others go, one
after the other, where they take away most of Σ_layers error/|W|², the relative squared errors;
where one more head does not help but several do, the several are taken for their mean. The errors
of different layers matter differently to the logits, which this rule does not look at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from convattn.bounds.approximation import approximate_convolution
from convattn.encodings.layer import AttentionLayer
from convattn.networks.steps import Attention, Convolution, Network, Residual, Step, mixing_steps


@dataclass(frozen=True)
class LayerChoices:
    """What a convolution can be replaced by.

    Attributes:
        layers: With at most 1, 2, …, K² heads.
        errors: The relative squared error of each, certified from above, and never rising.
    """

    layers: tuple[AttentionLayer, ...]
    errors: tuple[float, ...]

    @property
    def most(self) -> int:
        """K²."""
        return len(self.layers)


def choices_of(network: Network) -> dict[str, LayerChoices]:
    """For every convolution of a folded network its approximations with 1, …, K² heads.

    Raises:
        ValueError: For two layers of one name, and as `approximate_convolution` does.

    >>> import jax.numpy as jnp
    >>> kernel = jnp.zeros((3, 3, 1, 1)).at[1, :, 0, 0].set(jnp.array([1.0, 0.0, -1.0]))
    >>> found = choices_of((Convolution(kernel, jnp.zeros(1), 1, "edge"),))["edge"]
    >>> found.most, round(found.errors[0], 3), found.errors[1] < 1e-6
    (9, 0.5, True)
    """
    found: dict[str, LayerChoices] = {}
    for step in mixing_steps(network):
        if not isinstance(step, Convolution):
            raise ValueError(f"{step.name} is attention already; give the folded network")
        if step.name in found:
            raise ValueError(f"two layers are named {step.name!r}; give each its own name")
        kernel = np.asarray(step.kernel)
        size = float((kernel.astype(np.float64) ** 2).sum()) or 1.0
        layers: list[AttentionLayer] = []
        errors: list[float] = []
        for heads in range(1, kernel.shape[0] * kernel.shape[1] + 1):
            approximation = approximate_convolution(kernel, heads, bias=step.bias)
            layer, error = approximation.layer, approximation.error.upper / size
            if errors and error > errors[-1]:
                layer, error = layers[-1], errors[-1]
            layers.append(replace(layer, stride=(step.stride, step.stride)))
            errors.append(error)
        found[step.name] = LayerChoices(tuple(layers), tuple(errors))
    return found


def distribute(choices: Mapping[str, LayerChoices], heads: int) -> dict[str, int]:
    """How many heads each layer gets of so many for all: the rule above.

    Raises:
        ValueError: For fewer heads than layers.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention([[[1.0]]])
    >>> steep = LayerChoices((layer,) * 3, (0.9, 0.5, 0.0))
    >>> distribute({"steep": steep, "flat": LayerChoices((layer,) * 2, (0.1, 0.0))}, 4)
    {'steep': 3, 'flat': 1}
    """
    if heads < len(choices):
        raise ValueError(
            f"heads={heads}, but there are {len(choices)} layers, each with one or more"
        )
    given = dict.fromkeys(choices, 1)
    left = heads - len(choices)
    while True:
        steps = []
        for name, now in given.items():
            errors = choices[name].errors
            for more in range(1, min(left, choices[name].most - now) + 1):
                gain = (errors[now - 1] - errors[now + more - 1]) / more
                steps.append((gain, name, more))
        gain, name, more = max(steps, key=lambda step: step[0], default=(0.0, "", 0))
        if gain <= 0:
            return given
        given[name] += more
        left -= more


def compress(
    network: Network, choices: Mapping[str, LayerChoices], heads: Mapping[str, int]
) -> Network:
    """The network with each convolution replaced by its approximation with so many heads.

    Args:
        heads: By name; more than K² count as K².
    """

    def chain(steps: Sequence[Step]) -> Network:
        return tuple(map(changed, steps))

    def changed(step: Step) -> Step:
        if isinstance(step, Residual):
            return Residual(chain(step.branch), chain(step.shortcut))
        if not isinstance(step, Convolution):
            return step
        choice = choices[step.name]
        return Attention(choice.layers[min(heads[step.name], choice.most) - 1], step.name)

    return chain(network)
