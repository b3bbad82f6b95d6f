"""Evidence of level BOUNDED: a self-attentive convolution made of a kernel, on whole real images.

The exact convolution is known in 64-bit integers. One head at an M whose off-target weights
underflow must equal it, rounded once; two heads at finite b_00 must be within the bound of
`two_head_error_bound`.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from convattn.bounds.score_error import ASSUMPTION
from convattn.bounds.self_attentive_rounding import two_head_error_bound
from convattn.ledger import evidence
from convattn.ledger.claim import Evidence, Level, Run
from convattn.ledger.evidence.exact_convolution import exact_convolution
from convattn.ledger.evidence.layer_runs import DTYPES, OUT_CHANNELS, equal, integer_kernel, within
from convattn.sac import sac_from_convolution, self_attentive_convolution


def self_attentive_equals_convolution(
    name: str,
    kernel_size: tuple[int, ...],
    *,
    exact: bool,
    stride: int = 1,
    dilation: int = 1,
    key_stride: int | None = None,
    dtypes: tuple[str, ...] = DTYPES,
    count: int = 4,
    quick: bool = False,
) -> Evidence:
    """`self_attentive_convolution(sac_from_convolution(kernel))` against the exact convolution.

    Args:
        As for `sac_from_convolution`, with ε = 1/2; `count` images.
    """

    def check(run: Run) -> str:
        images = evidence.whole_images(run)[:count]
        kernel = integer_kernel(run.rng("kernel"), kernel_size, images.shape[-1], OUT_CHANNELS)
        bias = run.rng("bias").integers(-8, 9, OUT_CHANNELS)
        grid: dict[str, Any] = {"stride": stride, "dilation": dilation}
        at_queries = exact_convolution(images, kernel, **grid)
        step = stride if key_stride is None else key_stride
        at_keys = exact_convolution(images, kernel, stride=step, dilation=dilation)
        sums = np.abs(kernel).reshape(-1, OUT_CHANNELS).sum(axis=0)
        magnitude = int(np.abs(images).max() * sums.max())
        found = []
        for dtype in dtypes:
            parameters = sac_from_convolution(
                jnp.asarray(kernel, dtype),
                jnp.asarray(bias, dtype),
                exact=exact,
                key_stride=key_stride,
                **grid,
            )
            result = jax.jit(self_attentive_convolution)(parameters, jnp.asarray(images, dtype))
            if exact:
                bound = two_head_error_bound(
                    at_keys, at_queries, dtype, bias=bias, magnitude=magnitude
                )
                found.append(within(dtype, result, at_queries + bias, bound))
            else:
                found.append(equal(dtype, result, at_queries + bias))
        return f"{len(images)} images, {parameters.heads} heads; " + "; ".join(found)

    return Evidence(
        name,
        Level.BOUNDED,
        check,
        assumes=ASSUMPTION
        if exact
        else "exp underflows to zero; integer sums below 2^24 are exact",
        quick=quick,
    )
