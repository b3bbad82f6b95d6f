"""Which parameters of a model a loss does not reach."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from convattn_lab.training.state import named_leaves


def unreached(model: Any, inputs: Any) -> list[str]:
    """The names of the parameters whose gradient is zero everywhere, in training."""
    graph, parameters, rest = nnx.split(model, nnx.Param, ...)

    @jax.jit
    def gradient(parameters: Any) -> Any:
        def loss(parameters: Any) -> Any:
            logits = nnx.merge(graph, parameters, rest, copy=True)(inputs, training=True)
            weights = jnp.asarray(np.random.default_rng(3).normal(size=logits.shape), jnp.float32)
            return (jax.nn.log_softmax(logits) * weights).sum()

        return jax.grad(loss)(parameters)

    result = gradient(parameters)
    return [name for name, leaf in named_leaves(result) if not np.any(np.asarray(leaf))]
