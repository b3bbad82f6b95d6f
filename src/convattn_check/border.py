"""Border: without a ring of zero tokens no softmax layer is the zero-padded convolution.

Positions are in the scores alone: the values see what a token holds, and not where it is.

One axis is enough for a claim about images: an image of one row of patches, and a kernel that is
zero but for its middle row, turn it into a counterexample on two axes.
"""

from math import prod

from convattn_check import reading as read
from convattn_check.claims import Facts, require_claim
from convattn_check.convolution import Axis, response_to_ones
from convattn_check.reject import require, show

LARGEST_SIDE = 32  # of a kernel and of a patch whose outputs are summed one by one


def check_border(claim: str, value: object) -> str:
    """Without a ring zero padding fails at the border.

    On the bare grid the rows of every head sum to one over the image's own tokens, so a constant
    image, all of whose tokens are alike, gets the same output at every query, content scores and
    limits included; for the values carry no positions. The zero-padded convolution of the image of
    ones does not: at a token its outputs are the sums of the taps that fall into the image.
    """
    names = ("kernel_size", "image_size", "patch_size", "kernel", "queries", "sums")
    body = read.fields(value, "body", names)
    size = read.sides(body["kernel_size"], "kernel_size", None, LARGEST_SIDE)
    image = read.sides(body["image_size"], "image_size", len(size), read.LARGEST_POSITION)
    patch = read.sides(body["patch_size"], "patch_size", len(size), LARGEST_SIDE)
    facts = Facts("border", claim, size, patch)
    require_claim(facts)
    require(
        all(side % p == 0 for side, p in zip(image, patch, strict=True)),
        "border",
        f"image_size {image} is not made of whole patches {patch}",
    )
    axes = [Axis(k, p) for k, p in zip(size, patch, strict=True)]
    kernel = read.entries(body["kernel"], "kernel", prod(size))
    last = [side // p - 1 for side, p in zip(image, patch, strict=True)]
    queries = read.array(body["queries"], "queries", lambda q, at: read.position(q, at, last), 2)
    sums = [response_to_ones(axes, kernel, image, query) for query in queries]
    require(
        read.same(body["sums"], sums) and sums[0] != sums[1],
        "border",
        f"sums {show(body['sums'])}, expected {show(sums)}, two lists that differ",
    )
    return (
        "no softmax layer whose values carry no positions is, on the bare image of size "
        f"{image}, patch {patch}, the zero-padded convolution with this {facts.size} kernel: for "
        f"the image of ones that has different outputs at the tokens {queries[0]} and {queries[1]}"
    )
