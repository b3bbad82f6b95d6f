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

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from convattn.bounds.approximation import approximate_convolution
from convattn.encodings.layer import AttentionLayer


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


def choices_of(
    kernels: Mapping[str, np.ndarray], layers: Mapping[str, AttentionLayer]
) -> dict[str, LayerChoices]:
    """For every convolution of a network its approximations with 1, …, K² heads.

    Args:
        kernels: `[K, K, in, out]`, by the names of the convolutions.
        layers: From `attention_of`, whose strides and paddings are kept.

    Raises:
        ValueError: As `approximate_convolution` does.

    >>> import jax.numpy as jnp, convattn as ca
    >>> kernel = jnp.zeros((3, 3, 1, 1)).at[1, :, 0, 0].set(jnp.array([1.0, 0.0, -1.0]))
    >>> found = choices_of({"edge": kernel}, {"edge": ca.conv_to_attention(kernel)})["edge"]
    >>> found.most, round(found.errors[0], 3), found.errors[1] < 1e-6
    (9, 0.5, True)
    """
    found: dict[str, LayerChoices] = {}
    for name, given in kernels.items():
        kernel, exact = np.asarray(given), layers[name]
        size = float((kernel.astype(np.float64) ** 2).sum()) or 1.0
        choices: list[AttentionLayer] = []
        errors: list[float] = []
        for heads in range(1, kernel.shape[0] * kernel.shape[1] + 1):
            approximation = approximate_convolution(kernel, heads)
            layer, error = approximation.layer, approximation.error.upper / size
            if errors and error > errors[-1]:
                layer, error = choices[-1], errors[-1]
            choices.append(replace(layer, stride=exact.stride, padding=exact.padding))
            errors.append(error)
        found[name] = LayerChoices(tuple(choices), tuple(errors))
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
    choices: Mapping[str, LayerChoices], heads: Mapping[str, int]
) -> dict[str, AttentionLayer]:
    """Of each convolution the approximation with so many heads, for `apply` of `attention_of`.

    Args:
        heads: By name; more than K² count as K².
    """
    return {
        name: choice.layers[min(heads[name], choice.most) - 1] for name, choice in choices.items()
    }
