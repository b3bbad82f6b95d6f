"""How many blocks a transformer needs at least to be a convolution (S.blocks)."""

from collections.abc import Sequence

from convattn.bounds.head_counts import HeadCount
from convattn.bounds.heads import count_heads
from convattn.operators.integers import as_integer


def count_blocks(
    kernel_size: int | Sequence[int],
    heads: int,
    *,
    patch_size: int | Sequence[int] = 1,
    in_channels: int = 1,
    out_channels: int = 1,
    dilation: int | Sequence[int] = 1,
) -> HeadCount:
    """How many blocks of so many heads are necessary for the worst kernel of its size.

    L blocks of H heads need (H + 1)^L ≥ ρ, the largest rank of F, as the residual connection is one
    head more. That is for networks of which the positions are in the scores alone (relative biases,
    rotary), with content, LayerNorm and MLPs, whose tokens are all of the image (no class token,
    register or padding), even if they share no more than the derivative at one image of equal
    tokens, in which every offset joins two tokens. At finite scores, where some token is outside
    the receptive field of some query, (H + 1)^L > ρ.

    Args:
        kernel_size: As `count_heads` takes it.
        heads: H, of each block.
        patch_size, in_channels, out_channels, dilation: As `count_heads` takes them.

    Returns:
        The number of blocks with its claim, basis and reason.

    Raises:
        ValueError: As `count_heads`, and for heads that are no positive integer.

    Source: S.blocks of this project's ledger.

    >>> # the 729 offsets between 14 × 14 tokens, and the 12 heads of ViT-B
    >>> blocks = count_blocks(27, 12, in_channels=768, out_channels=768)
    >>> blocks, blocks.reason
    (HeadCount(3, claim='S.blocks', basis='proved'), '(12 + 1)^3 >= rank F = 729')
    """
    base = as_integer(heads, "heads") + 1
    counts = count_heads(
        kernel_size,
        patch_size=patch_size,
        in_channels=in_channels,
        out_channels=out_channels,
        dilation=dilation,
    )
    least = int(counts.offsets > 1)  # without a block no other token is read
    while base**least < counts.rank:
        least += 1
    reason = f"({heads} + 1)^{least} >= rank F = {counts.rank}"
    return HeadCount(least, "S.blocks", counts.exact.necessary.basis, reason)
