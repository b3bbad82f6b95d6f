"""The exact layer of a kernel with its uniform head tied to the others."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Num

from convattn.constructions.convolution import SourceConvolution
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.options import require_uniform_weight
from convattn.encodings.base import score_dtype
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.tied import TiedLayer
from convattn.operators.padding import read_padding


def tied_layer(
    kernel: Num[Array, "*taps in out"],
    uniform_weight: float | Array,
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: Any,
) -> TiedLayer:
    """The heads of S.finite on pixels; the kernel is their maps, untouched.

    Args:
        kernel: Of floating point.
        uniform_weight: ε.
        padding: As for `conv`, no wider than the kernel reaches.

    Raises:
        ValueError: For ε that is no number between 0 and 1 in the dtype of the scores.

    >>> layer = tied_layer(jnp.ones((3, 2, 5)), 0.5, (1,), (1,), "SAME")
    >>> layer, layer.output.shape
    (AttentionLayer(4 heads of BiasEncoding, 2 to 5 features), (3, 2, 5))
    """
    dtype = score_dtype(kernel)
    require_uniform_weight(uniform_weight, dtype)
    geometry = ConvolutionGeometry.of(kernel.shape[:-2], 1, stride, dilation)
    resolved = read_padding(padding, geometry.kernel_size, geometry.dilation, geometry.stride)
    filled = None if resolved.is_zero_ring else resolved
    convolution = SourceConvolution(kernel, None, geometry, padding=filled)
    table = jnp.asarray(np.eye(geometry.heads + 1, geometry.heads, dtype=dtype))
    weight = jnp.asarray(uniform_weight, dtype)
    encoding = BiasEncoding(table, weight, geometry.offsets)
    return TiedLayer(**vars(convolution.layer(encoding, None, convolution.maps)))
