"""The networks that L21's Table 1 sets side by side, as settings.

Sizes are those of the table; the rest is that of the papers named with each.
"""

from convattn.nnx.vision_transformer.settings import Mixing, VisionTransformerSettings


def cmhsa(kernel_size: int = 3, mixing: Mixing = "attention") -> VisionTransformerSettings:
    """L21's CMHSA-K: six layers of width 768 on patches of 16 × 16 pixels.

    In the convolution phase patches are tokens as they are; L21 says nothing of the patch
    projection afterwards, and leaves the ring of zero tokens out.

    Args:
        kernel_size: K, 3 or 5 in the paper.
        mixing: `"convolution"` for the first phase, `"attention"` for the second.

    Source: L21 §4.1, Table 1 and appendix B; stochastic depth 0.1 from DeiT.

    >>> cmhsa(5, "convolution").kernel_size, cmhsa().heads, cmhsa().depth
    (5, 9, 6)
    """
    return VisionTransformerSettings(mixing=mixing, kernel_size=kernel_size)


def vit_base() -> VisionTransformerSettings:
    """ViT-B/16: twelve layers of twelve heads, dropout 0.1, and no stochastic depth.

    Source: Dosovitskiy et al. 2021, Table 1, and Table 3 for the dropout.

    >>> vit_base().width, vit_base().dropout
    (768, 0.1)
    """
    return _with_class_token(768, 12, dropout=0.1, stochastic_depth=0.0)


def deit_small() -> VisionTransformerSettings:
    """DeiT-S: half of the width of DeiT-B, six heads.

    Source: Touvron et al. 2021, Table 1, and Table 9 for the stochastic depth 0.1.

    >>> deit_small().width, deit_small().inner
    (384, 1536)
    """
    return _with_class_token(384, 6, dropout=0.0, stochastic_depth=0.1)


def deit_base() -> VisionTransformerSettings:
    """DeiT-B: ViT-B/16 with stochastic depth in place of dropout.

    Source: Touvron et al. 2021, Table 1, and Table 9 for the stochastic depth 0.1.

    >>> deit_base().heads, deit_base().stochastic_depth
    (12, 0.1)
    """
    return _with_class_token(768, 12, dropout=0.0, stochastic_depth=0.1)


def _with_class_token(
    width: int, heads: int, *, dropout: float, stochastic_depth: float
) -> VisionTransformerSettings:
    """Twelve layers, heads of 64, a class token, learned positions and a learned projection."""
    return VisionTransformerSettings(
        depth=12,
        width=width,
        inner=4 * width,
        projection="learned",
        heads=heads,
        head_width=64,
        position="absolute",
        pooling="class",
        dropout=dropout,
        stochastic_depth=stochastic_depth,
    )
