"""SAC and MSAC on sequences (B19 §5), and what a language model needs of them.

A sentence is an image of height 1, and its filters are 1×m; `as_sequence` takes the axis of height
one away, after which the operators run on `[batch, length, channels]`.

**Causality.** A model that predicts the next token must not see it: the output at position i may
depend on positions ≤ i alone. A filter of Definition 1 of width m reads positions up to
i + ⌈d(m-1)/2⌉. So under a causal attention mask alone, for m ≥ 2, the query at i already holds
later tokens, and so do the keys and values near i. With `causal=True` every filter is padded on the
left only, its taps are -(m-1), …, 0, and the attention mask is causal: position i then sees exactly
the positions ≤ i. (Queries and keys that are combined at i come from positions ≤ i, and each of
those from positions ≤ its own.)
"""

from dataclasses import fields, replace
from typing import Any

from convattn.sac.multiscale import MultiscaleParameters
from convattn.sac.parameters import SelfAttentiveParameters
from convattn.sac.relative_bias import EvenBias

_TAPPED = ("value", "query", "key", "ordinary")


def as_sequence(parameters: Any, *, causal: bool = False) -> Any:
    """The SAC or MSAC of sequences that a 1×m one is on images of height 1.

    Args:
        parameters: `SelfAttentiveParameters` of 1×m filters, or `MultiscaleParameters` of those.
        causal: Give the same filters the taps -(m-1), …, 0, and mask the future.

    Raises:
        ValueError: For filters of height above one, and for parameters of sequences.

    >>> import jax.numpy as jnp
    >>> pairs = SelfAttentiveParameters(jnp.ones((4, 1, 2, 3, 5)))
    >>> as_sequence(pairs).value.shape, as_sequence(pairs).stride
    ((4, 2, 3, 5), (1,))
    """
    if isinstance(parameters, MultiscaleParameters):
        scales = tuple(as_sequence(scale, causal=causal) for scale in parameters.scales)
        return replace(parameters, scales=scales)
    if len(parameters.kernel_size) != 2 or parameters.kernel_size[0] != 1:
        raise ValueError(
            f"the filters have the size {parameters.kernel_size}, but expected 1 × m: the filters "
            "of a language model have height one"
        )
    changes: dict[str, Any] = {"causal": causal}
    for entry in fields(parameters):
        value = getattr(parameters, entry.name)
        if entry.name in _TAPPED and value is not None:
            changes[entry.name] = value[0] if entry.name == "ordinary" else value[:, 0]
        elif entry.name in ("stride", "dilation", "key_stride"):
            changes[entry.name] = value[1:]
    if parameters.position is not None:
        changes["position"] = EvenBias(
            parameters.position.values[:, 0], parameters.position.uniform_weight
        )
    result: SelfAttentiveParameters = replace(parameters, **changes)
    return result
