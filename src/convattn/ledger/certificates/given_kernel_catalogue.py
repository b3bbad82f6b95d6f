"""The committed certificates about given kernels: S.kernel, S.approx, S.content and S.lemma3."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Int

from convattn.ledger.certificates.counterexample import no_shared_map_certificate
from convattn.ledger.certificates.given_kernel import (
    approximation_certificate,
    kernel_heads_certificate,
)
from convattn.ledger.certificates.lower_bound import box_bound_certificate, pixel_bound_certificate

BOX = [[1, 1, 1]] * 3
LAPLACE = [[0, 1, 0], [1, -4, 1], [0, 1, 0]]
SOBEL = ([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], [[-1, -2, -1], [0, 0, 0], [1, 2, 1]])
KERNEL_HEADS = (  # name, patch size
    ("box", 1),
    ("laplace", 1),
    ("sobel", 1),
    ("texture", 1),
    ("cross", 1),
    ("box", 2),
    ("laplace", 2),
    ("box", 16),
)
APPROXIMATIONS = (  # name, heads, patch size
    ("texture", 2, 1),
    ("texture", 4, 1),
    ("box", 3, 2),
    ("laplace", 4, 2),
    ("box", 4, 16),
)
CONTENT_PIXELS = ((3, 9, 1), (3, 3, 3), (3, 2, 2))  # K, in, out
CONTENT_BOXES = ((3, 2), (5, 2), (3, 16))  # K, P
# Unnormalised weights of relative heads at the shifts -2, …, 2 of three pixels in a row.
THREE_PIXELS = (("1", "2", "4", "1", "3"), ("3", "1", "1", "2", "5"), ("2", "5", "1", "1", "1"))
SHARED_MAPS = ((1, 3), (3, 3))  # kernel size, heads


def named_kernel(name: str) -> Int[np.ndarray, "K1 K2 in out"]:
    """One of the kernels of these certificates, in integers.

    - `box`, `laplace`: one channel; the second has both signs, and sums to 0.
    - `sobel`: one channel in, the derivatives along the two axes out.
    - `texture`: two channels in and out, no structure.
    - `cross`: two channels out that read the centre, and the difference of two neighbours: its row
      space holds one nonnegative direction, and they do not span it.

    >>> int(named_kernel("laplace").sum())
    0
    """
    if name == "sobel":
        return np.array(SOBEL).transpose(1, 2, 0)[:, :, None, :]
    if name == "texture":
        return (np.arange(36) ** 3 % 19 - 9).reshape(3, 3, 2, 2)
    if name == "cross":
        kernel = np.zeros((3, 3, 1, 2), int)
        kernel[1, 1, 0, 0], kernel[1, 0, 0, 1], kernel[1, 2, 0, 1] = 1, 1, -1
        return kernel
    return np.array({"box": BOX, "laplace": LAPLACE}[name])[:, :, None, None]


def given_kernel_certificates() -> Iterator[tuple[str, dict[str, Any]]]:
    """File name and certificate, one after the other."""
    for name, patch in KERNEL_HEADS:
        statement = (
            f"At finite scores the kernel '{name}' on patches of size {patch} takes exactly one "
            "content-free head more than its flattened form has rank."
        )
        made = kernel_heads_certificate(statement, named_kernel(name), patch)
        yield f"S.kernel-{name}-P{patch}.json", made
    for name, heads, patch in APPROXIMATIONS:
        statement = (
            f"{heads} content-free heads come within one head of the optimum for the kernel "
            f"'{name}' on patches of size {patch}."
        )
        made = approximation_certificate(statement, named_kernel(name), heads, patch)
        yield f"S.approx-{name}-P{patch}-heads{heads}.json", made
    content = (
        "Some {0}x{0} kernel takes so many heads whose weights are continuous in the image at "
        "zero: its derivative there."
    )
    for kernel, channels, out in CONTENT_PIXELS:
        statement = content.format(kernel)
        made = pixel_bound_certificate("S.content", statement, kernel, channels, out)
        yield f"S.content-K{kernel}-in{channels}-out{out}.json", made
    for kernel, patch in CONTENT_BOXES:
        made = box_bound_certificate("S.content", content.format(kernel), kernel, patch)
        yield f"S.content-K{kernel}-P{patch}.json", made
    relative = [
        {"relative": [[shift - 2, weight] for shift, weight in enumerate(weights)]}
        for weights in THREE_PIXELS
    ]
    for kernel, heads in SHARED_MAPS:
        statement = (
            f"{heads} softmax heads with finite relative biases on three pixels span what a "
            f"kernel of size {kernel} reads at each query, and no value maps serve all."
        )
        made = no_shared_map_certificate(statement, kernel, 3, relative[:heads], "S.lemma3")
        yield f"S.lemma3-heads{heads}-K{kernel}.json", made
