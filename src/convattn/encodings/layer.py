"""`AttentionLayer`: everything that a layer of attention needs to be applied to an image."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Num

from convattn.encodings.base import PositionalEncoding, score_dtype
from convattn.operators.arrays import accumulation_dtype
from convattn.operators.attention import HIGHEST
from convattn.operators.padding import FilledAxis, Padding, filled_axes
from convattn.operators.patches import Ring
from convattn.operators.relative_content import relative_scores
from convattn.operators.shifts import TokenGrid

BORDERS = ("zeros", "none")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ContentScores:
    """Scores from content, s_h(q, k) = (X_q Q_h + a_h)·(X_k K_h + c_h + r_(k - q)) / scale.

    Without tables r_δ is zero. With them it is concat(row_(δ_1), column_(δ_2)), the same for all
    heads: the first block of a query's features meets the shift of the rows, the second that of
    the columns.

    Attributes:
        query, key: `[heads, features, key_features]`.
        query_bias, key_bias: `[heads, key_features]` or none.
        scaled: Divide by √key_features (L21 eq. 4) or not (C20 eq. 2).
        tables: For each axis `[2n - 1, features]`, for at most n tokens there (ring included); the
            features add up to key_features. Or none.

    Source: C20 eq. 2; with tables C20 §4.3, after Ramachandran et al. 2019.
    """

    query: Num[Array, "heads features key_features"]
    key: Num[Array, "heads features key_features"]
    query_bias: Num[Array, "heads key_features"] | None = None
    key_bias: Num[Array, "heads key_features"] | None = None
    scaled: bool = field(default=True, metadata={"static": True})
    tables: tuple[Array, ...] | None = None

    def scores(
        self,
        queries: Num[Array, "batch queries features"],
        keys: Num[Array, "batch keys features"],
        grid: TokenGrid | None = None,
    ) -> Num[Array, "batch heads queries keys"]:
        """The scores between query tokens and key tokens, in at least float32.

        Args:
            grid: Where queries and keys stand, all of them, row-major; tables need it.

        Raises:
            ValueError: For tables without a grid, or too small for it.
        """
        dtype = accumulation_dtype(queries, keys, self.query, self.key, *(self.tables or ()))

        def project(tokens: Array, weight: Array, bias: Array | None) -> Array:
            weight = weight.astype(dtype)
            projected = jnp.einsum("btd,hde->bhte", tokens.astype(dtype), weight, precision=HIGHEST)
            return projected if bias is None else projected + bias.astype(dtype)[None, :, None, :]

        left = project(queries, self.query, self.query_bias)
        right = project(keys, self.key, self.key_bias)
        scores = jnp.einsum("bhqe,bhke->bhqk", left, right, precision=HIGHEST)
        if self.tables is not None:
            if grid is None:
                raise ValueError(
                    "grid=None, but these content scores have tables of relative positions; say "
                    "where queries and keys stand with a TokenGrid"
                )
            scores = scores + relative_scores(self.tables, left, grid)
        return scores / math.sqrt(self.query.shape[-1]) if self.scaled else scores


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Register:
    """One key more, which has no place and whose value is zero, as a register of a ViT.

    Attributes:
        scores: What each head scores it with, at every query; finite.
        per_token: Whether log N is added, N the number of tokens: then a head gives the register
            e^score times as much weight as N keys of score zero together, at every image size.

    Source: S.registers and S.padding of this project's ledger.

    >>> shares = Register(jnp.log(jnp.array([1.0, 3.0])), True)
    >>> jnp.exp(shares.at(4)).round(2).tolist()  # beside four tokens of weight one
    [4.0, 12.0]
    """

    scores: Num[Array, " heads"]
    per_token: bool = field(default=False, metadata={"static": True})

    def at(self, number_of_tokens: int) -> Float[Array, " heads"]:
        """The scores beside so many tokens, in at least float32."""
        scores = self.scores.astype(score_dtype(self.scores))
        return scores + math.log(number_of_tokens) if self.per_token else scores


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AttentionLayer:
    """A multi-head self-attention layer on images; a pytree, so it can be jitted and trained.

    Layer(X) = Σ_h g_h A_h X W_val,h W_out,h + b on the tokens of the image, where A_h is the
    softmax of the positional scores, plus the content scores if there are any, and g_h is 1 but
    for the encodings whose value maps must know the number of keys.

    Attributes:
        encoding: Positional parameters, one head each (see `convattn.encodings`).
        value: `[heads, P²·in, head_dim]`, or None for the identity.
        output: `[heads, head_dim, P_out²·out]`, or None for the identity.
        bias: `[P_out²·out]` or None.
        content: `ContentScores` or None.
        register: `Register` or None.

    >>> import convattn as ca
    >>> ca.conv_to_attention(jnp.ones((3, 3, 1, 8)), stride=2)
    AttentionLayer(10 heads of BiasEncoding, 1 to 8 features, stride=(2, 2), padding=SAME)

    **Static fields** (hashable, part of the tree's structure):

    - `patch_size`: P for each axis; its length is the number of spatial axes.
    - `stride`: for each axis. Where it divides P the output patch has P/stride pixels; otherwise
      the layer computes all pixels and then keeps every stride-th.
    - `dilation`: for each axis, the distance between taps, as `attention_to_conv` needs it.
    - `ring`: tokens (before, after) on each axis around those that are asked: zeros, which make
      the result zero-padded, or what `padding` says.
    - `padding`: what fills the ring before patches are cut, or None for zero tokens.
    - `causal`: whether the keys after a query's last offset are masked; on sequences of pixels,
      where that offset is the query's own token (`"CAUSAL"`).
    """

    encoding: PositionalEncoding
    value: Array | None
    output: Array | None
    bias: Array | None = None
    content: ContentScores | None = None
    patch_size: tuple[int, ...] = field(default=(1, 1), metadata={"static": True})
    stride: tuple[int, ...] = field(default=(1, 1), metadata={"static": True})
    dilation: tuple[int, ...] = field(default=(1, 1), metadata={"static": True})
    ring: Ring = field(default=((0, 0), (0, 0)), metadata={"static": True})
    padding: Padding | None = field(default=None, metadata={"static": True})
    register: Register | None = None
    causal: bool = field(default=False, metadata={"static": True})

    def __repr__(self) -> str:
        """One line: the heads, the features in and out of a token, and what is not the default."""
        maps = [part.shape for part in (self.value, self.output) if part is not None]
        features = f", {maps[0][1]} to {maps[-1][2]} features" if maps else ""
        named = {name: getattr(self, name) for name in ("stride", "dilation", "patch_size")}
        parts = [f"{name}={sizes}" for name, sizes in named.items() if set(sizes) != {1}]
        parts += [] if self.padding is None else [f"padding={self.padding}"]
        parts += [] if self.content is None else ["content"]
        parts += [] if self.register is None else ["a register"]
        parts += ["causal"] if self.causal else []
        details = "".join(f", {part}" for part in parts)
        return (
            f"AttentionLayer({self.heads} heads of {type(self.encoding).__name__}"
            f"{features}{details})"
        )

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.encoding.heads

    @property
    def is_exact_form(self) -> bool:
        """Whether it is the form of a construction that is exact at finite parameters."""
        if self.register is not None:
            return self.register.per_token
        return getattr(self.encoding, "is_exact_form", False)

    def require_no_register(self, what: str) -> None:
        """Refuse a register where what is done knows tokens only.

        Raises:
            ValueError: For a layer with a register.
        """
        if self.register is not None:
            raise ValueError(
                f"the layer has a register, a key that is no token, but {what}; convert with "
                "border='zeros'"
            )

    @property
    def writes_stride_to_tokens(self) -> bool:
        """Whether the output patches already hold the strided image."""
        return all(p % s == 0 for p, s in zip(self.patch_size, self.stride, strict=True))

    @property
    def output_patch_size(self) -> tuple[int, ...]:
        """The pixels of an output patch on each axis."""
        if not self.writes_stride_to_tokens:
            return self.patch_size
        return tuple(p // s for p, s in zip(self.patch_size, self.stride, strict=True))

    @property
    def subsampling(self) -> tuple[int, ...]:
        """The stride that is left to take after the tokens are an image again."""
        return (1,) * len(self.stride) if self.writes_stride_to_tokens else self.stride

    @property
    def dtype(self) -> jnp.dtype | None:
        """The dtype of the parameters that meet the images: value, output and bias maps."""
        parts = [part for part in (self.value, self.output, self.bias) if part is not None]
        return jnp.result_type(*parts) if parts else None

    def check_causal(self) -> None:
        """Refuse a causal mask on what has no order of tokens, or gains that know all keys."""
        if self.causal and self.patch_size != (1,):
            raise ValueError(
                f"causal=True with patch_size={self.patch_size}, but expected sequences of pixels, "
                "(1,): images have no order, and patches hold pixels that come later; leave causal "
                "out, or take patch_size=1"
            )
        if self.causal and self.encoding.head_gains(1) is not None:
            raise ValueError(
                f"causal=True with {type(self.encoding).__name__}, whose value maps know one "
                "number of keys, but expected scores that know it, as it differs by query; convert "
                "with encoding='bias'"
            )

    def token_grid(self, image_size: Sequence[int], border: str = "zeros") -> TokenGrid:
        """The tokens of an image of that size and the ring around them.

        Where the ring is filled, its tokens are queries as well, and no ring stands around them.

        Args:
            border: `"zeros"` for the layer's own ring, `"none"` for the bare grid.

        Raises:
            ValueError: Where patches do not divide the sides, where the kernel does not fit, and
                for the bare grid of a layer that fills its ring.

        >>> import convattn as ca
        >>> kernel = jnp.ones((3, 1, 1))
        >>> ca.conv_to_attention(kernel).token_grid((5,))
        TokenGrid(queries=(5,), ring=((1, 1),))
        >>> ca.conv_to_attention(kernel, padding="EDGE").token_grid((5,))
        TokenGrid(queries=(7,), ring=((0, 0),))
        """
        if border not in BORDERS:
            raise ValueError(
                f"border={border!r}, but expected 'zeros' (the layer's own ring of zero tokens, "
                "for the zero-padded convolution) or 'none' (the bare grid)"
            )
        self.check_causal()
        none, ahead = ((0, 0),) * len(self.ring), self.ring[0][1] if self.causal else None
        if self.padding is not None:
            if border == "none":
                raise ValueError(
                    "border='none', but the layer fills its ring "
                    f"({self.padding.fill.lower()}), which makes it this convolution (S.pad); "
                    "leave border out, or convert with padding='SAME_TORCH'"
                )
            sides = (axis.tokens for axis in self.filled_axes(image_size))
            return TokenGrid(tuple(sides), none, ahead)
        if any(side % p for side, p in zip(image_size, self.patch_size, strict=True)):
            raise ValueError(
                f"images of {tuple(image_size)} pixels, but expected sides that patch_size="
                f"{self.patch_size} divides; pad or crop the images, or "
                "write symbolic sides as multiples, such as '2*height'"
            )
        sides = (side // p for side, p in zip(image_size, self.patch_size, strict=True))
        return TokenGrid(tuple(sides), none if border == "none" else self.ring, ahead)

    def filled_axes(self, image_size: Sequence[int]) -> tuple[FilledAxis, ...]:
        """How the ring is filled around an image of that size, for a layer with a `padding`.

        Raises:
            ValueError: Without a padding, and where the kernel does not fit.
        """
        if self.padding is None:
            raise ValueError("padding=None, but expected a layer whose ring is filled")
        return filled_axes(self.padding, image_size, self.stride, self.patch_size, self.ring)
