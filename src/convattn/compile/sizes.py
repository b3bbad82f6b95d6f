"""How large a compiled vision transformer is, and what a vision transformer can hold."""

from dataclasses import dataclass
from math import isqrt

from convattn.compile.network import NotCompiled
from convattn.compile.plan import HELD, LEAST_HEAD, Plan
from convattn.operators.integers import as_integer

MAX_PARAMETERS, MAX_TOKENS = 300_000_000, 4096
_CODES = 4 + 1  # the channels of one lattice's positions, and of its mean


@dataclass(frozen=True)
class Size:
    """Of a vision transformer.

    Attributes:
        width: Features of a token.
        num_heads, head_dim: Of a block.
        blocks: How many.
        hidden: Units of an MLP.
        tokens: With the class token.
        parameters: All.
    """

    width: int
    num_heads: int
    head_dim: int
    blocks: int
    hidden: int
    tokens: int
    parameters: int

    @classmethod
    def of(cls, plan: Plan) -> "Size":
        """That of a plan."""
        image = plan.network.image
        lattice = image.lattice
        assert lattice is not None
        tokens = lattice.tokens[0] * lattice.tokens[1] + 1
        width, hidden = plan.width, plan.hidden
        block = 4 * width**2 + 2 * width * hidden + 9 * width + hidden
        patches = width * (lattice.patch[0] * lattice.patch[1] * image.channels + 1)
        classes = plan.network.logits.channels
        rest = patches + width * (tokens + 1) + 2 * width + classes * (width + 1)
        blocks = len(plan.blocks)
        return cls(
            width, plan.num_heads, plan.head_dim, blocks, hidden, tokens, blocks * block + rest
        )

    def require_at_most(self, parameters: int, tokens: int) -> None:
        """Refuse what is larger.

        Raises:
            NotCompiled: Says how large it is.
        """
        if self.parameters > parameters or self.tokens > tokens:
            raise NotCompiled(
                f"{self}; that is {4 * self.parameters / 2**30:.1f} GiB in float32, but expected "
                f"at most {parameters:,} parameters and {tokens:,} tokens; take a smaller network "
                "or image, or larger patches, or give max_parameters"
            )

    def __str__(self) -> str:
        """One line."""
        return (
            f"a vision transformer of {self.blocks} blocks, width {self.width}, {self.num_heads} "
            f"heads of {self.head_dim}, MLPs of {self.hidden}, {self.tokens} tokens, "
            f"{self.parameters:,} parameters"
        )


@dataclass(frozen=True)
class Capacity:
    """What a vision transformer holds.

    Attributes:
        kernel_size: The largest odd K whose K × K convolution is one block.
        channels: Of a plain network of such convolutions, one a block.
        residual_channels: Of a residual one, which keeps three maps at a time.
        layers: Convolutions; the last block is the classifier's mean.
    """

    kernel_size: int
    channels: int
    residual_channels: int
    layers: int


def capacity(width: int, num_heads: int, depth: int, patch_size: int = 1) -> Capacity:
    """Which convolutional networks on one grid a vision transformer of this size holds.

    A plain network keeps two maps at a time, what a convolution reads and what it writes, a
    residual one three; half of the features hold numbers, the others their negatives.

    Args:
        width, num_heads, depth: Of the vision transformer.
        patch_size: P; a token holds P² points of each channel, and r tokens reach r·P pixels.

    Raises:
        ValueError: For a width that the heads do not divide, or too small a one.

    Source: docs/compile.md of this project.

    >>> capacity(768, 12, 12)  # ViT-B on single pixels
    Capacity(kernel_size=3, channels=64, residual_channels=64, layers=11)
    """
    width, num_heads, depth, patch_size = (
        as_integer(number, name)
        for number, name in (
            (width, "width"),
            (num_heads, "num_heads"),
            (depth, "depth"),
            (patch_size, "patch_size"),
        )
    )
    if width % num_heads or width // num_heads < LEAST_HEAD:
        raise ValueError(
            f"width={width} and num_heads={num_heads}, but expected a width that the heads divide "
            f"into at least {LEAST_HEAD} features each, which tell positions"
        )
    points = patch_size**2
    reach = (isqrt(num_heads) - 1) // 2
    room = width // 2 - HELD - _CODES
    own = width // num_heads // points
    channels = [min(own, room // (maps * points)) for maps in (2, 3)]
    if min(channels) < 1:
        raise ValueError(
            f"width={width} and {num_heads} heads at patch_size={patch_size} hold no channel; take "
            "more features a head, or smaller patches"
        )
    return Capacity(2 * reach * patch_size + 1, channels[0], channels[1], depth - 1)
