"""The heads that vision transformers have, and the heads that a convolution of their image takes.

A row is one size of attention layer: for Swin each stage has its own, on tokens that stand for
ever larger patches of the image. The convolution is K × K, from the three channels of the image to
three channels, written on patches of that size, for heads of that dimension.

Two things decide besides the number of heads. A token must hold its patch, 3P² numbers, or the
image is not in the layer at all: `holds_patch`. And Swin attends within windows of 7 × 7 tokens, so
that what suffices on a whole grid does so only at queries whose offsets lie in their window. Only
heads and widths are compared: ViT and DeiT encode positions absolutely, where the constructions
want relative scores or those of L21.absolute.
"""

from dataclasses import dataclass
from typing import Any

from convattn.bounds.head_counts import HeadCount, HeadRange
from convattn.bounds.heads import count_heads

COLOURS = 3
VIT = "Dosovitskiy et al. 2021 (ICLR), Table 1"
STEINER = "Steiner et al. 2022 (TMLR), Table 1"
DEIT = "Touvron et al. 2021 (ICML), Table 1"
SWIN = "Liu et al. 2021 (ICCV), Table 7 and section 3.3 (head dimension 32, windows 7 x 7)"


@dataclass(frozen=True)
class AttentionSize:
    """One size of attention layer of a model.

    Attributes:
        `model`; `patch_size`, the pixels on a side that a token stands for; `heads`; `embedding`,
        the width of a token; `window`, tokens on a side within which it attends, or none; `source`,
        the paper and the table.
    """

    model: str
    patch_size: int
    heads: int
    embedding: int
    source: str
    window: int | None = None

    @property
    def head_dim(self) -> int:
        """The width of a head: 64, but 80 in ViT-H and 32 in Swin.

        >>> sorted({size.head_dim for size in VISION_TRANSFORMERS})
        [32, 64, 80]
        """
        return self.embedding // self.heads

    @property
    def holds_patch(self) -> bool:
        """Whether a token is wide enough for an injective embedding of its patch."""
        return self.embedding >= COLOURS * self.patch_size**2


def _swin(model: str, width: int, heads_of_stage: int) -> tuple[AttentionSize, ...]:
    """Four stages: patches of 4 pixels, then both patch and width doubled, as are the heads."""
    return tuple(
        AttentionSize(
            f"{model} stage {stage + 1}",
            4 * 2**stage,
            heads_of_stage * 2**stage,
            width * 2**stage,
            SWIN,
            window=7,
        )
        for stage in range(4)
    )


VISION_TRANSFORMERS: tuple[AttentionSize, ...] = (
    AttentionSize("ViT-Ti/16", 16, 3, 192, STEINER),
    AttentionSize("ViT-S/16", 16, 6, 384, STEINER),
    AttentionSize("ViT-S/32", 32, 6, 384, STEINER),
    AttentionSize("ViT-B/16", 16, 12, 768, VIT),
    AttentionSize("ViT-B/32", 32, 12, 768, VIT),
    AttentionSize("ViT-L/16", 16, 16, 1024, VIT),
    AttentionSize("ViT-L/32", 32, 16, 1024, VIT),
    AttentionSize("ViT-H/14", 14, 16, 1280, VIT),
    AttentionSize("DeiT-Ti", 16, 3, 192, DEIT),
    AttentionSize("DeiT-S", 16, 6, 384, DEIT),
    AttentionSize("DeiT-B", 16, 12, 768, DEIT),
    *_swin("Swin-T", 96, 3),
    *_swin("Swin-S", 96, 3),
    *_swin("Swin-B", 128, 4),
    *_swin("Swin-L", 192, 6),
)


@dataclass(frozen=True)
class HeadsRow:
    """A model's layer, a kernel size, and the heads that the convolution takes there.

    Attributes:
        enough: `"exactly"` if the layer has the heads and the width for every such convolution
            exactly, `"limit"` if in the limit only, and `"growing"` if only in one with value maps
            that grow without bound; `"no"` if for some kernel it has not, in any limit; `"bounded:
            no"` if for some kernel it has not in a limit with value maps that stay bounded, and
            with others these numbers do not say; `"open"` if they say nothing. (S.width (4) is not
            counted: it makes 14 heads of width 64 necessary for K = 3 on patches of 16 pixels, and
            ViT-B/16 has twelve.)
    """

    size: AttentionSize
    kernel_size: int
    limit: HeadRange
    exact: HeadRange

    @property
    def enough(self) -> str:
        """What the layer has heads for."""
        if not self.size.holds_patch or self.size.heads < self.limit.necessary:
            return "no"
        if self.size.heads >= self.exact.sufficient:
            return "exactly"
        if self.size.heads >= self.limit.sufficient:
            return "limit" if self.size.heads >= self.bounded_sufficient else "growing"
        return "open" if self.size.heads >= self.bounded else "bounded: no"

    @property
    def bounded(self) -> HeadCount:
        """What is necessary in the limit if the value maps stay bounded."""
        return self.limit.bounded or self.limit.necessary

    @property
    def bounded_sufficient(self) -> HeadCount:
        """What suffices in the limit if they do."""
        return self.limit.bounded_sufficient or self.limit.sufficient

    def as_dict(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {
            "model": self.size.model,
            "source": self.size.source,
            "patch_size": self.size.patch_size,
            "heads": self.size.heads,
            "embedding": self.size.embedding,
            "head_dim": self.size.head_dim,
            "window": self.size.window,
            "holds_patch": self.size.holds_patch,
            "kernel_size": self.kernel_size,
            "limit": self.limit.as_dict(),
            "exact": self.exact.as_dict(),
            "enough": self.enough,
        }


def heads_table(kernel_sizes: tuple[int, ...] = (3, 5, 7)) -> list[HeadsRow]:
    """Heads that the models have against heads that a K × K convolution of the image takes.

    Args:
        kernel_sizes: Each K, at least 1.

    Returns:
        A row for each layer size of `VISION_TRANSFORMERS` and each K.

    Source: S.headdim and S.width of this project's ledger; the models' papers, named in each row.

    >>> row = next(row for row in heads_table((3,)) if row.size.model == "ViT-B/16")
    >>> row.size.heads, int(row.limit.sufficient), int(row.exact.sufficient), row.enough
    (12, 16, 28, 'bounded: no')
    """
    rows = []
    for size in VISION_TRANSFORMERS:
        for kernel_size in kernel_sizes:
            counts = count_heads(
                kernel_size,
                patch_size=size.patch_size,
                in_channels=COLOURS,
                out_channels=COLOURS,
                head_dim=size.head_dim,
            )
            rows.append(HeadsRow(size, kernel_size, counts.limit, counts.exact))
    return rows
