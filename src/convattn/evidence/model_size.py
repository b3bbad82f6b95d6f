"""Parameters and floating-point operations of the six models of C20, by formula.

The encoder, layer by layer, as the authors' published code has it (github.com/epfml/attention-cnn):
a 2 × 2 invertible down-sampling (3 → 12 channels, 32 × 32 → 16 × 16 = 256 tokens), a linear map
12 → 400, six layers, average pooling, a linear classifier 400 → 10. A layer attends, maps the
concatenated heads (9 · 400 numbers) to 400, maps those to 400 again, and has a feed-forward network
400 → 512 → 400; each half ends in a LayerNorm. An addition and a multiplication are two operations;
biases, norms, softmax, pooling and the scores of content-free heads are not counted as operations.
"""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, INTERMEDIATE, HEADS, LAYERS = 400, 512, 9, 6
TOKENS_A_SIDE, INPUTS, CLASSES = 16, 12, 10
PRUNED = (2, 4, 1, 2, 6, 0)  # heads removed from each layer, C20 appendix E


@dataclass(frozen=True)
class Size:
    """Parameters, and operations with and without the products that involve attention matrices."""

    parameters: int
    operations: int
    operations_with_attention: int


def linear(inputs: int, outputs: int, bias: bool = True) -> int:
    """The parameters of a linear map.

    >>> linear(12, 400)
    5200
    """
    return inputs * outputs + (outputs if bias else 0)


def positional_parameters(encoding: str, heads: int, features: int) -> int:
    """The parameters of one layer's positional encoding.

    quadratic: a centre and a width for each head. gaussian: a centre and a 2 × 2 root. learned: for
    each axis a table of 31 shifts and a vector for each head, `features` numbers wide. content: the
    tables alone, as the query takes the vector's place.
    """
    tables = 2 * (2 * TOKENS_A_SIDE - 1) * features
    return {
        "quadratic": 3 * heads,
        "gaussian": 6 * heads,
        "learned": tables + 2 * features * heads,
        "content": tables,
    }[encoding]


def attention_model(
    encoding: str,
    *,
    heads: Sequence[int] = (HEADS,) * LAYERS,
    features: int = WIDTH,
    separate_values: bool = False,
) -> Size:
    """The size of an encoder.

    **Arguments:**

    - `encoding`: `"quadratic"`, `"gaussian"`, `"learned"` or `"content"`.
    - `heads`: for each layer.
    - `features`: numbers per axis of the learned tables.
    - `separate_values`: eq. 4 taken literally, a 400 × 400 value map for each head and one W_out, in
      place of the code's one value map over all heads and a further dense map.

    >>> attention_model("quadratic").parameters
    12086844
    """
    tokens = TOKENS_A_SIDE**2
    parameters = linear(INPUTS, WIDTH) + linear(WIDTH, CLASSES)
    products = tokens * INPUTS * WIDTH + WIDTH * CLASSES
    attended = 0
    for count in heads:
        wide = count * WIDTH
        if separate_values:
            maps = linear(WIDTH, wide, bias=False) + linear(wide, WIDTH)
            map_products = 2 * wide * WIDTH
        else:
            maps = linear(wide, WIDTH) + linear(WIDTH, WIDTH)
            map_products = wide * WIDTH + WIDTH * WIDTH
        if encoding == "content":
            maps += 2 * linear(WIDTH, wide, bias=False)
            map_products += 2 * WIDTH * wide
        feed_forward = linear(WIDTH, INTERMEDIATE) + linear(INTERMEDIATE, WIDTH)
        norms = 2 * 2 * WIDTH
        parameters += maps + feed_forward + norms
        parameters += positional_parameters(encoding, count, features)
        products += tokens * (map_products + 2 * WIDTH * INTERMEDIATE)
        attended += tokens * tokens * wide * (2 if encoding == "content" else 1)
    return Size(parameters, 2 * products, 2 * (products + attended))


def resnet18() -> Size:
    """ResNet18 for CIFAR: a 3 × 3 stem, four stages of two basic blocks, widths 64 to 512.

    >>> resnet18().parameters
    11173962
    """
    side, channels = 32, 64
    parameters = 3 * 3 * 3 * channels + 2 * channels
    products = side**2 * 3 * 3 * 3 * channels
    for stage, width in enumerate((64, 128, 256, 512)):
        for block in range(2):
            stride = 2 if stage > 0 and block == 0 else 1
            side //= stride
            parameters += 9 * channels * width + 9 * width * width + 4 * width
            products += side**2 * (9 * channels * width + 9 * width * width)
            if stride > 1 or channels != width:
                parameters += channels * width + 2 * width
                products += side**2 * channels * width
            channels = width
    parameters += linear(channels, CLASSES)
    products += channels * CLASSES
    return Size(parameters, 2 * products, 2 * products)
