"""A convolution as the constructions take it: read once, its token maps formed once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, SupportsIndex

import jax.numpy as jnp
import numpy as np
from jax import Array

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_output_map import expand_groups, token_bias, token_maps
from convattn.constructions.row_basis import concrete_kernel, distinct_rows
from convattn.encodings.base import PositionalEncoding
from convattn.encodings.layer import AttentionLayer, Register
from convattn.operators.arrays import as_floats
from convattn.operators.convolution import check_kernel
from convattn.operators.integers import as_integer
from convattn.operators.padding import Padding, read_padding


@dataclass(frozen=True)
class SourceConvolution:
    """A convolution whose arguments have been read and checked.

    Attributes:
        kernel: `[*K, in, out]`, floating point, without groups.
        bias: `[out]` or none.
        geometry: Its sizes.
        groups: How many groups of channels the kernel had.
        padding: What fills the ring, or None for zero tokens.
        causal: Whether the keys after a query are masked.
    """

    kernel: Array
    bias: Array | None
    geometry: ConvolutionGeometry
    groups: int = 1
    padding: Padding | None = None
    causal: bool = False

    @classmethod
    def of(
        cls,
        kernel: Any,
        bias: Any = None,
        *,
        patch_size: int | Sequence[int] = 1,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        groups: SupportsIndex = 1,
        padding: Any = "SAME",
        causal: bool = False,
    ) -> "SourceConvolution":
        """Read the arguments of `conv`, and the size of the patches.

        Raises:
            ValueError: For what `conv` refuses of a kernel; complex numbers; integers that become
                others in floating point; a padding whose output is larger than the image.

        >>> convolution = SourceConvolution.of([[[1.0]], [[2.0]], [[3.0]]], patch_size=2)
        >>> convolution.maps.shape, convolution.padding
        ((3, 2, 2), None)
        """
        groups = as_integer(groups, "groups", 1)
        kernel, bias = check_kernel(kernel, bias, groups)
        if any(jnp.iscomplexobj(array) for array in (kernel, bias) if array is not None):
            raise ValueError("kernel or bias is complex, but attention takes real ones; split it")
        kernel = as_floats(kernel, "kernel")
        geometry = ConvolutionGeometry.of(kernel.shape[:-2], patch_size, stride, dilation)
        resolved = read_padding(padding, geometry.kernel_size, geometry.dilation, geometry.stride)
        if resolved.is_too_wide:
            raise ValueError(
                f"padding={resolved.widths}, pixels (before, after) on each axis, is wider than "
                "the kernel reaches, and makes more outputs than the image has pixels, before a "
                "stride drops any, but attention gives one for each token of the image: expected "
                f"at most {tuple(map(sum, resolved.reach))} on both sides of an axis together "
                "(S.pad); pad the images before the layer"
            )
        before = tuple((sum(pair), 0) for pair in resolved.reach)
        if causal and (resolved.fill, resolved.widths) != ("ZEROS", before):
            raise ValueError(
                f"causal=True with padding={resolved}, but expected 'CAUSAL', whose outputs read "
                "nothing that comes later, on a sequence; pass padding='CAUSAL', or leave causal "
                "out"
            )
        filled = None if resolved.is_zero_ring else resolved
        return cls(expand_groups(kernel, groups), bias, geometry, groups, filled, causal)

    @cached_property
    def maps(self) -> Array:
        """M_δ for every token offset, `[T, P²·in, P_out²·out]`."""
        return token_maps(self.kernel, self.geometry)

    @cached_property
    def rows(self) -> np.ndarray:
        """The distinct rows of F; the kernel must be concrete.

        Raises:
            ValueError: For a traced kernel.
        """
        return distinct_rows(concrete_kernel(self.kernel), self.geometry)[0]

    def layer(
        self,
        encoding: PositionalEncoding,
        value: Array | None,
        output: Array | None,
        register: Register | None = None,
    ) -> AttentionLayer:
        """The layer with these heads that stands for the convolution."""
        parts = (encoding, value, output, self.bias, self.padding, register)
        layer = replace(packed_layer(self.geometry, *parts), causal=self.causal)
        layer.check_causal()
        return layer


def packed_layer(
    geometry: ConvolutionGeometry,
    encoding: PositionalEncoding,
    value: Array | None,
    output: Array | None,
    bias: Array | None = None,
    padding: Padding | None = None,
    register: Register | None = None,
) -> AttentionLayer:
    """A layer with a geometry's sizes and ring, none beside a register; the bias is `[out]`."""
    return AttentionLayer(
        encoding=encoding,
        value=value,
        output=output,
        bias=None if bias is None else token_bias(bias, geometry),
        patch_size=geometry.patch_size,
        stride=geometry.stride,
        dilation=geometry.dilation,
        ring=geometry.ring if register is None else ((0, 0),) * len(geometry.ring),
        padding=padding,
        register=register,
    )
