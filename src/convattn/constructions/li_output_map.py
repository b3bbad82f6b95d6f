"""L21, the remark of appendix A.2: the explicit W^O, from a kernel to maps between tokens.

Write an image pixel as (patch γ, pixel p of the patch). The convolution's output there is

    Σ_t X[pixel P·γ + p + d·t] W_t.

The pixel read lies in patch γ + δ at place q, where P·δ + q = p + d·t. So on tokens

    conv(X)_γ = Σ_δ X_(γ+δ) M_δ,      (M_δ)_((q, i), (p, j)) = W_t[i, j]  if P·δ + q - p = d·t,
    0          if there is no such tap.

M_δ does not depend on γ: that is the translation invariance of the convolution. The δ with M_δ ≠ 0
are finitely many: that is its locality. Both are used; linearity alone, which L21 names, would not
do. On each axis the condition is separate, so the entry is found from one index per axis.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Num

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.operators.integers import require_entries


def expand_groups(
    kernel: Num[Array, "*taps grouped_in out"], groups: int
) -> Num[Array, "*taps in out"]:
    """The dense kernel of a grouped convolution: block-diagonal over the channels.

    >>> expand_groups(jnp.array([[[1, 2]]]), 2).tolist()
    [[[1, 0], [0, 2]]]
    """
    if groups == 1:
        return kernel
    *taps, width, out = kernel.shape
    blocks = kernel.reshape(*taps, width, groups, out // groups)
    dense = jnp.einsum("...igo,gh->...higo", blocks, jnp.eye(groups, dtype=kernel.dtype))
    return dense.reshape(*taps, groups * width, out)


@partial(jax.jit, static_argnames="geometry")  # the copy alone would take seconds to compile
def token_maps(
    kernel: Num[Array, "*taps in out"], geometry: ConvolutionGeometry
) -> Num[Array, "offsets patch_in patch_out"]:
    """M_δ for every token offset: the blocks of W^O. Entries are copied, never computed.

    Args:
        kernel: HWIO or WIO, groups already expanded.
        geometry: Sizes; `geometry.kernel_size` is the kernel's.

    Returns:
        `[T, P²·in, P_out²·out]`.

    Raises:
        ValueError: If these are too many to be written out.

    Source: L21, appendix A.2, remark; C20 Lemma 1 for P = 1, where M_δ = W_δ.

    >>> token_maps(jnp.array([[[1]], [[2]], [[3]]]), ConvolutionGeometry.of((3,), 2)).tolist()
    [[[0, 0], [1, 0]], [[2, 1], [3, 2]], [[0, 3], [0, 0]]]
    """
    axes = len(geometry.kernel_size)
    outgoing = math.prod(map(len, geometry.output_pixels)) * kernel.shape[-1]
    incoming = math.prod(geometry.patch_size) * kernel.shape[-2]
    require_entries(
        geometry.heads * incoming * outgoing,
        f"the maps of {geometry.heads} offsets from {incoming} to {outgoing} features",
        "take smaller patches",
    )
    if set(geometry.patch_size) == {1}:
        return kernel.reshape(geometry.heads, *kernel.shape[-2:])
    padded = jnp.pad(kernel, [*[(0, 1)] * axes, (0, 0), (0, 0)])  # index -1 reads the zero
    shape = [1] * (3 * axes)
    picks = []
    for axis, index in enumerate(geometry.tap_index):
        full = list(shape)
        full[axis], full[axes + axis], full[2 * axes + axis] = index.shape
        picks.append(index.reshape(full))
    blocks = padded[tuple(picks)]  # [δ.., p.., q.., in, out]
    offsets, outputs, inputs = (range(start * axes, (start + 1) * axes) for start in range(3))
    ordered = blocks.transpose(*offsets, *inputs, 3 * axes, *outputs, 3 * axes + 1)
    return ordered.reshape(geometry.heads, incoming, -1)


def token_bias(bias: Num[Array, " out"], geometry: ConvolutionGeometry) -> Num[Array, " patch_out"]:
    """The bias of every output pixel of a patch.

    >>> token_bias(jnp.array([1, 2]), ConvolutionGeometry.of((3,), 2)).tolist()
    [1, 2, 1, 2]
    """
    pixels = 1
    for outputs in geometry.output_pixels:
        pixels *= len(outputs)
    return jnp.tile(bias, pixels)
