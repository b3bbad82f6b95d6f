"""Certificates of S.depth, that two layers compose to a convolution, and of S.barrier.

The numbers of the first are those that `convattn.constructions.two_layers` puts into its layers,
before any rounding; γ is worked out for the image of the certificate.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

from convattn.constructions.geometry import ConvolutionGeometry
from convattn_ledger.certificates.canonical import rational
from convattn_ledger.certificates.equality import LEAK


def two_layers_body(
    kernel_size: Sequence[int], patch_size: int, image: Sequence[int], exact: bool
) -> dict[str, Any]:
    """Layers of T_1 and T_2 heads, and one more if they are exact, on an image of these tokens.

    Source: S.depth of this project's ledger.

    >>> body = two_layers_body((3, 3), 1, (3, 4), exact=True)
    >>> len(body["first"]["targets"]), len(body["second"]["targets"])
    (3, 4)
    """
    geometry = ConvolutionGeometry.of(kernel_size, patch_size)
    down, right = geometry.axis_offsets
    leak = LEAK if exact else Fraction(0)
    keep = 1 - leak
    margin = [[max(map(abs, steps))] * 2 for steps in (down, right)]
    ring = [[-min(down), max(down)], [0, 0]]
    between = [n + sum(pair) for n, pair in zip(image, margin, strict=True)]
    keys = [n + sum(pair) for n, pair in zip(between, ring, strict=True)]
    gamma = Fraction(prod(keys), prod(between)) + leak / keep
    first = {
        "ring": ring,
        "targets": [[a, 0] for a in down],
        "maps": [[rational((1 / keep) * (a == b)) for b in down] for a in down],
    }
    # by head, block and offset; M_ab is the map of the offset number a·T_2 + b
    places = list(product(range(len(right)), range(len(down))))
    entries = [[b, a, a * len(right) + b, rational(1 / keep)] for b, a in places]
    if exact:
        back = rational(-(leak / keep) * (1 + 1 / gamma))
        entries += [[len(right), a, a * len(right) + b, back] for b, a in places]
    uniform: list[list[int] | None] = [None] if exact else []
    return {
        "kernel_size": list(geometry.kernel_size),
        "patch_size": list(geometry.patch_size),
        "image": list(image),
        "margin": margin,
        "leak": rational(leak),
        "blocks": len(down),
        "first": first,
        "second": {"targets": [*([0, b] for b in right), *uniform], "maps": entries},
    }


def exponentials_body(kernel_size: int, patch_size: int, tokens: int) -> dict[str, Any]:
    """As many quadratic heads of one sharpness as cannot be exact on this many tokens.

    Source: S.barrier of this project's ledger.

    >>> exponentials_body(3, 1, 5)["heads"]
    3
    """
    offsets = [offset for (offset,) in ConvolutionGeometry.of((kernel_size,), patch_size).offsets]
    reach = max(offsets)
    heads = tokens - reach - 1
    # An offset that looks ahead or nowhere is seen from the first token, the others from the last.
    places = [[0, reach + 1] if offset >= 0 else [tokens - 1, 0] for offset in offsets]
    return {
        "kernel_size": [kernel_size],
        "patch_size": [patch_size],
        "tokens": tokens,
        "heads": heads,
        "places": places,
    }
