"""Every convolution of a network as a layer of attention: S.finite, layer by layer.

What mixes pixels in the result is attention, but for the mean of all pixels before the classifier,
which is one uniform head with the identity for its map, read at any one pixel. Everything else acts
on single pixels: ReLU, the sums of the residual connections, and the linear classifier.

*Claim.* The converted network is the network, at every image size, in exact arithmetic. *Proof.* By
induction over the steps: equal inputs of a convolution give equal outputs by S.finite (with its
ring, at finite parameters, whatever N), and every other step is the same function in both. ∎
"""

from dataclasses import replace
from functools import partial

import jax

from convattn.constructions.conversion import conv_to_attention
from convattn.networks.runs import SOON
from convattn.networks.steps import Attention, Convolution, Network, Residual, Step
from convattn.networks.weights.consistency import check_layer


def to_attention(
    network: Network, *, exact: bool | None = None, leak: float = 0.5, encoding: str = "bias"
) -> Network:
    """The same network with attention layers of K² + 1 heads in place of its convolutions.

    Args:
        exact: True or None for the form at finite parameters; False for the limit form of K² heads.
        leak: ε in (0, 1), for the exact form.
        encoding: As for `conv_to_attention`.

    Raises:
        ValueError: As `conv_to_attention` does, and for maps that overflow, naming the layer.

    Source: S.network of this project's ledger.

    >>> import jax.numpy as jnp
    >>> from convattn.networks.steps import mixing_steps
    >>> network = (Convolution(jnp.ones((3, 3, 1, 2)), jnp.zeros(2), 2, "stem"),)
    >>> (layer,) = (step.layer for step in mixing_steps(to_attention(network)))
    >>> layer.heads, layer.subsampling
    (10, (2, 2))
    """

    fixed = partial(conv_to_attention, encoding=encoding, exact=exact, leak=leak)
    made = jax.jit(fixed, static_argnames="stride", compiler_options=SOON)  # once for each shape

    def convert(step: Step) -> Step:
        if isinstance(step, Residual):
            parts = (tuple(map(convert, chain)) for chain in (step.branch, step.shortcut))
            return replace(step, branch=next(parts), shortcut=next(parts))
        if not isinstance(step, Convolution):
            return step
        try:
            layer = made(step.kernel, step.bias, stride=step.stride)
            check_layer(layer)
        except ValueError as error:
            raise ValueError(f"{step.name or 'a layer'}: {error}") from error
        return Attention(layer, step.name)

    return tuple(map(convert, network))
