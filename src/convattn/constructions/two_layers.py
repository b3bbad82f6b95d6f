"""S.depth: two layers of K and K + 1 heads are a K × K convolution; one layer takes K² + 1 heads.

Let Δ_1, Δ_2 be the token offsets on the two axes and M_ab the convolution's map at (a, b). Let
0 < ε < 1 and c = ε/(1 - ε).

**Layer 1** has a head for each a ∈ Δ_1. It runs on the image with zero tokens all around, and has a
ring of zeros above and below of its own, so that the key p + (a, 0) of every query p exists. Head a
has the row (1 - ε)S_a + εJ over N_1 keys and writes X/(1 - ε) into a block of channels of its own.
With m the sum of the image's tokens, block a at p holds

    Y_a(p) = X_(p + (a,0)) + c·m/N_1.

**Layer 2** has a head for each b ∈ Δ_2, on all N_2 outputs of layer 1, with the maps that take
block a through M_ab, and a uniform head. As layer 1 has outputs on the zero tokens, too, and enough
of them, each block sees every token of the image once: ΣY_a/N_2 = m/N_2 + c·m/N_1 = γ·m/N_1 with
γ = N_1/N_2 + c, the same for all blocks. So at a query of the image

    Σ_b ((1 - ε)Y(q + (0, b)) + ε·γ·m/N_1) M_b/(1 - ε) = conv(X)_q + (c + c·γ)·(m/N_1)·ΣM_ab,

and a uniform head, which sees γ·m/N_1 in each block, takes the second term back if its map is
-c(1 + 1/γ) times the sum of M_ab over b, from block a. ∎

γ depends on the size of the image and nothing else does: hence an object that is called on images.
In the limit form c = 0: K heads in each layer, and no uniform head. Two plain layers that are exact
each by itself take K + 1 and K + 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from convattn.constructions.conversion import conv_to_attention
from convattn.constructions.convolution import SourceConvolution
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.options import UNIFORM_WEIGHT, read_form
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.operators.patches import patchify, unpatchify


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TwoLayers:
    """Two attention layers that compute a convolution together; call it on images.

    Attributes:
        first: A head for each offset of the first axis, on tokens.
        second: A head for each offset of the second axis and, in the exact form, a uniform one.
        bias: `[out]` or none.
        patch_size: P.
        stride: s, of the convolution.
        exact: Whether it is exact at finite scores.
    """

    first: AttentionLayer
    second: AttentionLayer
    bias: Array | None = None
    patch_size: tuple[int, int] = field(default=(1, 1), metadata={"static": True})
    stride: tuple[int, int] = field(default=(1, 1), metadata={"static": True})
    exact: bool = field(default=True, metadata={"static": True})

    def __repr__(self) -> str:
        """One line: the heads, and the features in and out of a token."""
        return f"TwoLayers(first={self.first!r}, second={self.second!r}, exact={self.exact})"

    @property
    def heads(self) -> tuple[int, int]:
        """The heads of each layer."""
        return self.first.heads, self.second.heads

    def __call__(
        self, images: Any, *, backend: str = "auto"
    ) -> Float[Array, "images rows columns features"]:
        """The convolution of images, zero-padded.

        Args:
            images: `[images, height, width, channels]`; P divides the sides.
            backend: As for `apply_attention`.

        Raises:
            ValueError: For images of other axes or channels, or that patches do not divide.
        """
        images = jnp.asarray(images)
        assert self.first.output is not None
        channels = self.first.output.shape[1] // prod(self.patch_size)
        if images.ndim != 4 or images.shape[3] != channels:
            raise ValueError(
                f"images.shape={images.shape}, but expected [images, height, width, {channels}], "
                "the channels of the kernel"
            )
        shift = self._shift
        if any(shift):  # of patches of one pixel: zeros before stay behind the last query
            images = jnp.pad(images, ((0, 0), *((width, 0) for width in shift), (0, 0)))
        padded = self.padded(patchify(images, self.patch_size))
        between = apply_attention(self.first, padded, backend=backend)
        after = apply_attention(self.second_at(padded.shape[1:3]), between, backend=backend)
        result = unpatchify(self.cropped(after), self.patch_size)
        rows, columns = (n - width for n, width in zip(result.shape[1:3], shift, strict=True))
        result = result[:, : rows : self.stride[0], : columns : self.stride[1]]
        return result if self.bias is None else result + self.bias.astype(result.dtype)

    @property
    def _shift(self) -> tuple[int, int]:
        """By how many pixels `"SAME"` is off the kernel's centre: ⌊d/2⌋ for even K, else none."""
        sides = []
        for layer, axis in ((self.first, 0), (self.second, 1)):
            before, after = self._reach(layer, axis)
            sides.append((after - before) // 2)
        return sides[0], sides[1]

    @property
    def margin(self) -> tuple[int, int]:
        """How many zero tokens are laid on each side, so that every block sees the whole image."""
        return max(self._reach(self.first, 0)), max(self._reach(self.second, 1))

    def padded(self, tokens: Array) -> Array:
        """The tokens with zero tokens all around: what layer 1 is applied to."""
        return jnp.pad(tokens, ((0, 0), *((width, width) for width in self.margin), (0, 0)))

    def second_at(self, keys: Sequence[int]) -> AttentionLayer:
        """Layer 2 on so many rows and columns of keys: its uniform head depends on them."""
        if not self.exact:
            return self.second
        assert isinstance(self.first.encoding, BiasEncoding)
        assert self.second.output is not None
        uniform_weight = jnp.asarray(self.first.encoding.uniform_weight)
        ratio = uniform_weight / (1 - uniform_weight)
        gamma = (keys[0] + sum(self.first.ring[0])) / keys[0] + ratio
        output = self.second.output
        last = (output[-1].astype(gamma.dtype) * (1 + 1 / gamma)).astype(output.dtype)
        return replace(self.second, output=output.at[-1].set(last))

    def cropped(self, tokens: Array) -> Array:
        """Those of the image, of the tokens that layer 2 gives."""
        (down, right), (before, ahead) = self.margin, self._reach(self.second, 1)
        rows, columns = tokens.shape[1] - down, tokens.shape[2] + ahead - right
        return tokens[:, down:rows, right - before : columns]

    @staticmethod
    def _reach(layer: AttentionLayer, axis: int) -> tuple[int, int]:
        """How far a layer looks back on an axis, and how far ahead."""
        assert isinstance(layer.encoding, BiasEncoding)
        steps = [offset[axis] for offset in layer.encoding.offsets]
        return -min(steps), max(steps)


def conv_to_two_layers(
    kernel: Any,
    bias: Any = None,
    *,
    patch_size: int | Sequence[int] = 1,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    form: str | None = "exact",
    uniform_weight: float | Array = UNIFORM_WEIGHT,
    sharpness: float | Array | None = None,
) -> TwoLayers:
    """Two attention layers whose composition is `conv` with `padding="SAME_TORCH"`.

    Args:
        kernel: `[K_1, K_2, in/groups, out]`, odd or even; integers become float32.
        bias: `[out]` or none.
        patch_size: P; the heads are then one for each token offset of an axis.
        stride, groups: As for `conv`.
        dilation: As for `conv`; on patches 1.
        form: `"exact"`, K_1 and K_2 + 1 heads at finite scores; `"limit"`, K_1 and K_2.
        uniform_weight: ε in (0, 1), of the exact form.
        sharpness: The score M of the limit form; the default makes attention one-hot.

    Returns:
        A `TwoLayers`, for images of every size that P divides. Between the layers stand T_1·P²·in
        channels, T_1 the offsets of the first axis.

    Raises:
        ValueError: For what `conv_to_attention` refuses, a kernel that has not two axes, and a
            dilation on patches.

    Source: S.depth of this project's ledger.

    >>> import convattn as ca
    >>> kernel = jnp.arange(9.0).reshape(3, 3, 1, 1)
    >>> image = jnp.arange(12.0).reshape(1, 3, 4, 1)
    >>> layers = conv_to_two_layers(kernel)
    >>> layers.heads, bool(jnp.abs(layers(image) - ca.conv(image, kernel)).max() < 1e-3)
    ((3, 4), True)
    """
    exact = read_form(form, True)
    convolution = SourceConvolution.of(
        kernel, bias, patch_size=patch_size, dilation=dilation, groups=groups
    )
    kernel, geometry = convolution.kernel, convolution.geometry
    if kernel.ndim != 4:
        raise ValueError(
            f"kernel.shape={kernel.shape}, but expected [K_1, K_2, in, out]: a kernel of one axis "
            "has nothing to divide between two layers; use conv_to_attention"
        )
    if max(geometry.patch_size) > 1 and max(geometry.dilation) > 1:
        raise ValueError(
            f"dilation={dilation} with patch_size={patch_size}, but expected one of them to be 1: "
            "the token offsets of dilated taps on patches are no evenly spaced taps"
        )
    down, right = map(len, geometry.axis_offsets)
    maps = convolution.maps.reshape(down, right, *convolution.maps.shape[1:])
    width = maps.shape[2]
    # Layer 1 copies the token at its shift into block a; layer 2 takes block a through M_ab.
    copies = jnp.eye(down * width, dtype=kernel.dtype).reshape(down, width, down * width)
    across = maps.transpose(1, 0, 2, 3).reshape(right, down * width, -1)
    common: dict[str, Any] = {"form": "exact" if exact else "limit", "sharpness": sharpness}
    common |= {"uniform_weight": uniform_weight} if exact else {}
    step = geometry.dilation[0]
    around = ((step * ((down - 1) // 2), step * (down // 2)), (0, 0))
    first = conv_to_attention(copies[:, None], dilation=(step, 1), padding=around, **common)
    assert first.output is not None
    if exact:  # the second layer takes back the leak of both
        heads = first.encoding.take_heads(tuple(range(down)))
        first = replace(first, encoding=heads, output=first.output[:-1])
    second = conv_to_attention(
        across[None], dilation=(1, geometry.dilation[1]), padding="VALID", **common
    )
    return TwoLayers(
        first,
        second,
        convolution.bias,
        (geometry.patch_size[0], geometry.patch_size[1]),
        ConvolutionGeometry.of(kernel.shape[:-2], 1, stride).stride,  # type: ignore[arg-type]
        exact,
    )
