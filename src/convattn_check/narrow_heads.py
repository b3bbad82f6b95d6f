"""Narrow heads: rows of attention and lists of coordinates that serve every kernel of a size.

A head has at most d_H of a token's coordinates j, inputs (pixel, channel), or outputs where these
are fewer, and a row of its map for each: Σ_j x_j W_h[j, :]. So the heads are the convolution with
the maps M_δ if for each j, over the heads that hold j,

    Σ_h a_hδ W_h[j, :] = M_δ[j, :] for all δ, and nothing at other keys.

M_δ[j, :] is zero for every kernel unless some tap joins j to the token at δ. Let D_j be the δ where
one does; there it may be anything. So, with rows (w_h, 1) over the offsets and "any other key",
values W_h[j, :] exist for every kernel if each unit vector e_δ, δ in D_j, which is zero at any
other key, lies in the span of the rows of the heads that hold j: the rank of these rows does not
grow when the e_δ are added.

*Finite.* The scores log(1 + N·w_δ) at the offsets and 0 at any other of N keys have the row (Σ w_δ
S_δ + J)/Z, Z = 1 + Σ w_δ, J uniform. With the maps Z W_h the heads are the convolution where all
offsets are keys, with values that serve every N: so with a zero ring for every image.

*Limit.* Head h looks at offset 0 with weight 1 and at its own offset δ_h with weight ε, in limits
of softmax rows. A coordinate with D_j = {0} in any head has e_0 up to ε. Any other must be held by
a head with δ_h = 0, which has e_0, and by one for each δ in D_j but 0, which has e_δ with the
coefficients 1/ε and -1/ε. The value maps grow like 1/ε.
"""

from collections import Counter
from itertools import product
from math import prod

from convattn_check import reading as read
from convattn_check.claims import Facts, require_claim
from convattn_check.convolution import ABSENT, Axis
from convattn_check.cost import Work, whole_numbers
from convattn_check.elimination import eliminate
from convattn_check.reject import require

FIELDS = "kernel_size patch_size in_channels out_channels head_dimension regime heads count"
MOST_HEADS, MOST_OFFSETS, MOST_COORDINATES = 256, 32, 2**14


def check_narrow_heads(claim: str, value: object) -> str:
    """Check the body; the sentence that follows from it."""
    body = read.fields(value, "body", FIELDS.split())
    size = read.sides(body["kernel_size"], "kernel_size", None)
    patch = read.sides(body["patch_size"], "patch_size", len(size))
    inputs, outputs = (
        read.integer(body[name], name, 1, read.LARGEST_POSITION)
        for name in ("in_channels", "out_channels")
    )
    dimension = read.integer(body["head_dimension"], "head_dimension", 1)
    regime = read.string(body["regime"], "regime", ("limit", "finite"))
    width = prod(patch) * min(inputs, outputs)
    require(
        width <= MOST_COORDINATES,
        "range",
        f"a token has {width} coordinates, expected up to {MOST_COORDINATES}",
    )
    count = read.integer(body["count"], "count", 1, MOST_HEADS)
    axes = [Axis(k, p) for k, p in zip(size, patch, strict=True)]
    offsets = list(product(*(axis.offsets() for axis in axes)))
    require(len(offsets) <= MOST_OFFSETS, "range", f"{len(offsets)} offsets: up to {MOST_OFFSETS}")
    centre = offsets.index((0,) * len(size))
    joined = _joined(axes, min(inputs, outputs), outputs < inputs)
    facts = Facts(
        "narrow_heads", claim, size, patch, head_dimension=dimension, width=width, regime=regime
    )
    facts.heads, facts.split = count, _split(joined, dimension, regime == "finite")
    require_claim(facts)
    heads = read.items(body["heads"], "heads", count)
    rows: list[list[int]] = []
    heads_by_coordinate: list[list[int]] = [[] for _ in joined]
    for number, head in enumerate(heads):
        where = f"heads[{number}]"
        own = read.fields(head, where, ["weights", "coordinates"])
        weights = read.rationals(own["weights"], where, len(offsets))
        row, unit = whole_numbers(weights, where)
        require(min(row) >= 0, "weights", f"{where} has a negative weight")
        if regime == "limit":
            own_offset = sorted(weights)[1:] in (
                [0] * (len(weights) - 1),
                [0] * (len(weights) - 2) + [1],
            )
            require(
                weights[centre] == 0 and own_offset,
                "weights",
                f"{where}: expected 1 at the head's own offset, or all 0 if that is the offset 0",
            )
        rows.append([*row, unit])
        last = len(joined) - 1
        coordinates = read.integers(own["coordinates"], where, None, 0, last)
        require(
            1 <= len(coordinates) == len({*coordinates}) <= dimension,
            "coordinates",
            f"{where} has {len(coordinates)} coordinates, expected 1 to {dimension}, each once",
        )
        for j in coordinates:
            heads_by_coordinate[j].append(number)
    work = Work("the ranks, for all coordinates together,")
    for j, (reads, numbers) in enumerate(zip(joined, heads_by_coordinate, strict=True)):
        own_rows = [rows[head] for head in numbers]
        finite = regime == "finite"
        enough = _spans(own_rows, reads, work) if finite else _reaches(own_rows, reads, centre)
        require(enough, "span", f"coordinate {j}: its heads {numbers} do not reach all it is at")
    end = "at finite scores, exactly"
    if regime == "limit":
        end = "to any accuracy, with maps that grow like its inverse"
    return (
        f"{len(heads)} heads of dimension {dimension} are every {facts.size} convolution with "
        f"{inputs} channels in and {outputs} out, patch {patch}, zero-padded by a ring, {end}"
    )


def _joined(axes: list[Axis], channels: int, by_output: bool) -> list[list[int]]:
    """For each coordinate, pixel by pixel, the offsets at which some tap joins it to a token."""
    reads_by_axis = []
    for axis in axes:
        tables = [
            list(zip(*table, strict=True)) if not by_output else table for table in axis.pattern()
        ]
        reads_by_axis.append(
            [
                [any(tap != ABSENT for tap in table[pixel]) for table in tables]
                for pixel in range(axis.patch)
            ]
        )
    return [
        [at for at, is_read in enumerate(product(*pixel)) if all(is_read)]
        for pixel in product(*reads_by_axis)
        for _ in range(channels)
    ]


def _split(joined: list[list[int]], dimension: int, finite: bool) -> int:
    """The heads of one-hot attention whose maps are split: Σ_δ ⌈w_δ/d⌉, and ⌈n/d⌉ if finite."""
    widths = Counter(offset for reads in joined for offset in reads)
    parts = [*widths.values(), *([len(joined)] if finite else [])]
    return sum(-(-width // dimension) for width in parts)


def _spans(rows: list[list[int]], reads: list[int], work: Work) -> bool:
    """Whether the unit vectors at `reads` lie in the span of the rows."""
    if not rows:
        return False
    units = [[int(at == unit) for at in range(len(rows[0]))] for unit in reads]
    return eliminate(rows, work)[0] == eliminate([*rows, *units], work)[0]


def _reaches(rows: list[list[int]], reads: list[int], centre: int) -> bool:
    """Whether a head is there for each offset, or any for a coordinate that has the offset 0."""
    own = {row.index(1) if 1 in row[:-1] else centre for row in rows}
    return bool(own) if reads == [centre] else own >= {*reads}
