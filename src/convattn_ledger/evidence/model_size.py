"""Parameters and multiplications of the models in C20's Tables 1 and 4, layer by layer.

The self-attention models, as the authors' code builds them. Images are 32 × 32 × 3; a 2 × 2
invertible downsampling makes 16 × 16 = 256 tokens of 12 features; a linear map takes them to d =
400. Six layers follow, each with

- attention of N_h = 9 heads: every head mixes the tokens, the nine mixtures of 400 features are put
  side by side, and one value map takes these 9·400 features to 400;
- a further dense map 400 → 400, and a LayerNorm;
- a feed-forward part 400 → 512 → 400, and a LayerNorm;
- positional parameters: for the quadratic encoding Δ and α of each head (2 + 1); for the
  general one Δ and Σ^(-1/2) (2 + 4); for the learned one, in each layer, a table of 31 row
  shifts and one of 31 column shifts, 400 numbers each, and one vector for each table and head;
- with content: queries and keys, 400 → 9·400. Half of a query meets the row shifts and half the
  column shifts, so the tables hold 200 numbers, and there are no vectors of the heads.

The mean of the tokens goes to a classifier 400 → 10. Linear maps have a bias unless said
otherwise. ResNet18 is the usual one for CIFAR: 3 × 3 convolutions without bias, BatchNorm, 64,
128, 256, 512 channels, two blocks each, 1 × 1 shortcuts where the shape changes.

One FLOP is one multiplication or one addition, so a product counts two. Linear maps and
convolutions are counted; softmax, normalisations and the reading of tables are not. The products
of tokens with tokens are listed apart: A·X, Q·Kᵀ, and Q·Rᵀ with the 16 + 16 shifts of a query.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

WIDTH, HEADS, LAYERS, INNER, TOKENS, SIDE, CLASSES = 400, 9, 6, 512, 256, 16, 10
ENCODINGS = ("quadratic", "gaussian", "learned", "content")
MIXING, MATCHING, RELATING = APART = ("A·X", "Q·Kᵀ", "Q·Rᵀ")


@dataclass(frozen=True)
class Part:
    """One part of a model: its parameters, and its products for one image."""

    name: str
    parameters: int
    products: int = 0


def linear(name: str, inputs: int, outputs: int, positions: int = 1, bias: bool = True) -> Part:
    """A linear map, applied at so many positions.

    >>> linear("classifier", 400, 10)
    Part(name='classifier', parameters=4010, products=4000)
    """
    return Part(name, (inputs + bias) * outputs, inputs * outputs * positions)


def convolution(name: str, size: int, inputs: int, outputs: int, side: int) -> tuple[Part, Part]:
    """A size × size convolution without bias to side × side pixels, and its BatchNorm.

    >>> [part.parameters for part in convolution("stem", 3, 3, 64, 32)]
    [1728, 128]
    """
    weights = size * size * inputs * outputs
    return Part(name, weights, weights * side * side), Part(f"{name}, norm", 2 * outputs)


def self_attention_model(
    encoding: str, *, pruned: int = 0, table_width: int | None = None, tables: int = LAYERS
) -> tuple[Part, ...]:
    """A self-attention model of C20.

    Args:
        encoding: `"quadratic"`, `"gaussian"` (the general quadratic one), `"learned"`, or
            `"content"` (learned, with content).
        pruned: How many of the 54 heads are left out.
        table_width: Numbers for each row shift and for each column shift, if not 400, or 200 with
            content.
        tables: In how many layers there are tables; one if all layers share them.

    Raises:
        ValueError: For an unknown encoding, and for heads that are not there.

    >>> sum(part.parameters for part in self_attention_model("quadratic"))
    12086844
    """
    if encoding not in ENCODINGS:
        raise ValueError(f"encoding={encoding!r}, but expected one of {', '.join(ENCODINGS)}")
    if not 0 <= pruned <= LAYERS * HEADS:
        raise ValueError(
            f"pruned={pruned}, but expected 0 to {LAYERS * HEADS}, all heads there are"
        )
    if table_width is None:
        table_width = WIDTH // 2 if encoding == "content" else WIDTH
    parts = [linear("embedding", 12, WIDTH, TOKENS)]
    heads = LAYERS * HEADS - pruned  # over all layers together
    values = linear("value maps", heads * WIDTH, WIDTH, TOKENS, bias=False)
    parts += [
        Part("value maps", values.parameters + LAYERS * WIDTH, values.products),
        Part(MIXING, 0, heads * TOKENS**2 * WIDTH),
    ]
    if encoding in ("quadratic", "gaussian"):
        parts.append(Part("centres and widths", heads * (3 if encoding == "quadratic" else 6)))
    else:
        parts.append(Part("tables", tables * 2 * (2 * SIDE - 1) * table_width))
    if encoding == "learned":
        parts.append(Part("heads' vectors", heads * 2 * table_width))
    if encoding == "content":
        parts.append(linear("queries", WIDTH, heads * WIDTH, TOKENS))
        parts.append(linear("keys", WIDTH, heads * WIDTH, TOKENS))
        parts.append(Part(MATCHING, 0, heads * TOKENS**2 * WIDTH))
        parts.append(Part(RELATING, 0, heads * TOKENS * 2 * SIDE * table_width))
    for _ in range(LAYERS):
        parts += [
            linear("dense", WIDTH, WIDTH, TOKENS),
            Part("norm", 2 * WIDTH),
            linear("feed-forward, in", WIDTH, INNER, TOKENS),
            linear("feed-forward, out", INNER, WIDTH, TOKENS),
            Part("norm", 2 * WIDTH),
        ]
    return (*parts, linear("classifier", WIDTH, CLASSES))


def literal_model() -> tuple[Part, ...]:
    """The quadratic model with the attention of eq. 4: W_val^(h) of each head, then W_out, b_out.

    W_out, 9·400 → 400, takes the place of the dense map; the W_val^(h) have no bias.

    >>> sum(part.parameters for part in literal_model())
    19764444
    """
    parts = [
        part
        for part in self_attention_model("quadratic")
        if part.name not in ("value maps", "dense")
    ]
    for _ in range(LAYERS):
        parts.append(linear("W_val", WIDTH, HEADS * WIDTH, TOKENS, bias=False))
        parts.append(linear("W_out", HEADS * WIDTH, WIDTH, TOKENS))
    return tuple(parts)


def resnet18() -> tuple[Part, ...]:
    """ResNet18 for 32 × 32 images.

    >>> sum(part.parameters for part in resnet18())
    11173962
    """
    parts = [*convolution("stem", 3, 3, 64, 32)]
    before, side = 64, 32
    for channels in (64, 128, 256, 512):
        if channels != before:
            side //= 2
            parts += convolution("shortcut", 1, before, channels, side)
        for inputs in (before, channels):
            parts += convolution("convolution", 3, inputs, channels, side)
            parts += convolution("convolution", 3, channels, channels, side)
        before = channels
    return (*parts, linear("classifier", 512, CLASSES))


def parameters(parts: Iterable[Part]) -> int:
    """All parameters."""
    return sum(part.parameters for part in parts)


def flops(parts: Iterable[Part], *with_attention: str) -> int:
    """Two for each product; those of tokens with tokens only where they are named.

    >>> parts = [Part("dense", 0, 5), Part(MIXING, 0, 100)]
    >>> flops(parts), flops(parts, MIXING)
    (10, 210)
    """
    counted = (part for part in parts if part.name not in APART or part.name in with_attention)
    return sum(2 * part.products for part in counted)


def rounds_to(count: int, printed: str) -> bool:
    """Whether a count is what is printed, at the printed precision.

    >>> rounds_to(12_086_844, "12.1M"), rounds_to(15_022_000_000, "15B"), rounds_to(99, "0.0M")
    (True, True, True)
    """
    unit = {"M": 10**6, "B": 10**9}[printed[-1]]
    figure = Decimal(printed[:-1])
    return (Decimal(count) / unit).quantize(figure, ROUND_HALF_EVEN) == figure
