"""How the grids of an identity lie to each other: what its meaning says beyond its formulas.

Equal polynomials are not enough. "Two images with a gap as wide as the filters reach" is also true
of images that touch, where no filter reaches across, and then the sentence says more than was
checked. So an identity names conditions on its grids, each with the tensors that it is about:

| condition  | tensors    | holds if                                                              |
|------------|------------|-----------------------------------------------------------------------|
| `one grid` | any        | all have the same grid                                                |
| `alike`    | any        | all have the same grid, shifts and stride                             |
| `product`  | U, V, E    | E's grid has the axes of U's, then those of V's; no stride            |
| `sampled`  | R, E, G    | one grid; E has no stride, G has R's, and E's shifts; R's shift is 0  |
| `centred`  | F          | the shifts are all of -m, …, m on each axis, for some m               |
| `adjacent` | J, S, l, r | side by side along an axis on which a filter reads, without a gap     |
| `apart`    | J, S, l, r | the same, with a gap as wide as the filters reach                     |
| `read`     | E, …, T    | each shift of E reads some node in T, the last: no matrix is zero      |

In `adjacent` and `apart`, l and r select the pixels of two images, each with the grid of S, in that
of J, and the filters of J and S have the same shifts.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

from convattn_check.polynomial import Tensor, constant, flat
from convattn_check.reject import Reject, require

Grids = dict[str, dict[str, Any]]


def require_layout(
    conditions: Sequence[tuple[str, ...]], grids: Grids, entries: dict[str, Tensor]
) -> None:
    """Whether the grids (by tensor, as the certificate has them) meet all conditions."""
    for condition, *names in conditions:
        about = [grids[name] for name in names if name in grids]
        if condition in ("adjacent", "apart"):
            whole, part = about
            left, right = (entries[name] for name in names[2:])
            holds = _side_by_side(whole, part, left, right, condition == "apart")
        elif condition == "read":
            reading = {index[0] for index in entries[names[-1]]}
            holds = len(reading) == len(about[0]["shifts"])
        else:
            holds = _holds(condition, about)
        require(holds, "layout", f"{', '.join(names)} are {about}, expected {condition}")


def _holds(condition: str, about: list[dict[str, Any]]) -> bool:
    def same(*fields: str) -> bool:
        return all(tensor[field] == about[0][field] for tensor in about for field in fields)

    if condition == "alike":
        return same("grid", "shifts", "stride")
    if condition == "product":
        one, two, both = about
        return both["grid"] == one["grid"] + two["grid"] and {t["stride"] for t in about} == {1}
    if condition == "sampled":
        sample, plain, strided = about
        return (
            same("grid")
            and plain["stride"] == 1
            and strided["stride"] == sample["stride"]
            and strided["shifts"] == plain["shifts"]
            and sample["shifts"] == [[0] * len(sample["grid"])]
        )
    if condition == "centred":
        (shifts,) = (tensor["shifts"] for tensor in about)
        box = (range(-max(axis), max(axis) + 1) for axis in zip(*shifts, strict=True))
        return sorted(map(tuple, shifts)) == list(product(*box))
    return same("grid")


def _side_by_side(
    whole: dict[str, Any], part: dict[str, Any], left: Tensor, right: Tensor, apart: bool
) -> bool:
    """Whether two images lie along one axis on which the filters read, with the right gap."""
    if whole["shifts"] != part["shifts"]:
        return False
    first, second = (_corner(whole["grid"], part["grid"], image) for image in (left, right))
    along = [axis for axis, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
    if len(along) != 1:
        return False
    (axis,) = along
    gap = abs(first[axis] - second[axis]) - part["grid"][axis]
    reach = max(abs(shift[axis]) for shift in whole["shifts"])
    return reach > 0 and (gap >= reach if apart else gap == 0)


def _corner(grid: list[int], part: list[int], image: Tensor) -> tuple[int, ...]:
    """Where in the grid the image lies: a rectangle of the grid's nodes, in their order."""
    nodes = list(product(*map(range, part)))
    for corner in product(*(range(n - m + 1) for n, m in zip(grid, part, strict=True))):
        positions = (tuple(c + n for c, n in zip(corner, node, strict=True)) for node in nodes)
        if image == {
            (at, flat(position, grid)): constant(1) for at, position in enumerate(positions)
        }:
            return corner
    raise Reject("layout", f"an image of {part} pixels is no rectangle of the grid {grid}")
