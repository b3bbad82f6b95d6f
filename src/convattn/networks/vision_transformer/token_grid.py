"""`token_grid`: the tokens of a vision transformer, and the memory that they would take."""

import math

from convattn.networks.vision_transformer.state_dicts import VisionTransformer

MAX_NUMBERS, RATIO = 2**25, 16


def require_room(numbers: int, stored: int, what: str) -> None:
    """Refuse what a small file would make very large, before it is allocated.

    Args:
        numbers: How many would be formed.
        stored: How many the file holds.
        what: For the message.
    """
    most = max(MAX_NUMBERS, RATIO * stored)
    if numbers > most:
        raise ValueError(
            f"{what} has {numbers:,} numbers, but expected at most {most:,} of a model of "
            f"{stored:,}; take a model of fewer tokens or heads, or smaller images"
        )


def token_grid(model: VisionTransformer, image_size: tuple[int, int] | None) -> tuple[int, int]:
    """The rows and columns of tokens: of images of that size, or a square as the model has it.

    Raises:
        ValueError: Where the model has other positions or tables than for that size; without a
            size, where it has none, and where positions for n × n tokens may as well be those of
            n - 1 by n + 1 patches and a class token.
    """
    patch, others = model.patch.shape[2], len(model.prefix)
    tables = [t for t in (model.table, model.blocks[0].get("table")) if t is not None]
    rows = len(tables[0]) - 3 if tables else None
    known = None if model.positions is None else len(model.positions)
    if image_size is None:
        side = math.isqrt(known if known is not None else rows or 0)
        if known is None:
            side = (side + 1) // 2
        elif side**2 != known:
            side = math.isqrt(max(known - others, 0))
        grid, size = (side, side), (side * patch, side * patch)
    else:
        size = image_size
        grid = (size[0] // patch, size[1] // patch)
    tokens, shifts = grid[0] * grid[1], (2 * grid[0] - 1) * (2 * grid[1] - 1)
    if known is rows is image_size is None:
        problem = "the model has neither positions nor tables that would say it"
    elif any(side % patch or not side for side in size):
        problem = f"patches of {patch} × {patch} do not divide it"
    elif image_size is None and not tables and (other := _near_square(tokens, known, others)):
        raise ValueError(
            f"no image size: the model has positions for {known} tokens, which are {grid[0]} × "
            f"{grid[1]} patches without the {others} before them, or {other[0]} × {other[1]} or "
            f"{other[1]} × {other[0]} patches with them; give images or image_size (--image-size), "
            f"such as {size[0]} by {size[1]} pixels"
        )
    elif known not in (None, tokens, tokens + others):
        problem = f"the model has positions for {known} tokens, {others} of them not patches"
    elif rows not in (None, shifts) or (tables and others != 1):
        problem = f"the model has a table of {rows} relative positions"
    else:
        _require_room(model, tokens)
        return grid
    got = "no image size" if image_size is None else f"images of {size[0]} × {size[1]} pixels"
    raise ValueError(
        f"{got}: {tokens} patches in {grid[0]} × {grid[1]}, but {problem}; give images of the size "
        "that the model was trained with, resized beforehand"
    )


def _near_square(patches: int, known: int | None, others: int) -> tuple[int, int] | None:
    """Sides that differ by two at most, of which positions of a square may be with those before.

    >>> _near_square(169, 169, 1), _near_square(196, 196, 5)
    ((12, 14), None)
    """
    if not others or known != patches:
        return None
    left = patches - others
    side = math.isqrt(max(left, 0))
    return next(
        ((side, side + more) for more in range(3) if side and side * (side + more) == left), None
    )


def _require_room(model: VisionTransformer, tokens: int) -> None:
    """Refuse a network whose layers would take far more memory than its file."""
    parts = [model.patch, *(part for block in model.blocks for part in block.values())]
    parts += [part for part in (model.positions, model.table) if part is not None]
    stored, width = sum(part.size for part in parts), len(model.patch)
    pairs = model.heads * (tokens + len(model.prefix)) ** 2
    require_room(pairs, stored, "the attention of a layer")
    require_room(tokens * math.prod(model.patch.shape[1:]), stored, "an image")
    require_room(model.heads * width**2, stored, "the linear map of all heads of a layer")
