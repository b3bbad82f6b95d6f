"""Planted errors for S.depth, S.rigidity, S.barrier, S.sharpness and S.tiles."""

from dataclasses import replace

from flint import fmpq
from proofs.plants.changes import one_more, scaled, then

BODY = "ledger.certificates.two_layers.two_layers_body"
FLOOR = "ledger.evidence.head_floor.floor_below"
LAYERS = "constructions.two_layers.conv_to_two_layers"
one_head_repeated = then(lambda drawn: (drawn[0], drawn[1] * 0 + drawn[1][:1]))
equal_bases = then(lambda drawn: ([drawn[0][0]] * len(drawn[0]), drawn[1]))
shifted_tiling = then(lambda tiles: [(shape, (x + 1, y)) for shape, (x, y) in tiles])
stacked_tiling = then(lambda tiles: [(shape, (0, 0)) for shape, _ in tiles])


@then
def without_the_uniform_head(body):
    """The leaks stay."""
    second = body["second"]
    last = len(second["targets"]) - 1
    if second["targets"][last] is None:
        second["maps"] = [entry for entry in second["maps"] if entry[0] != last]
    return body


@then
def blocks_swapped(layers):
    """Layer 1 writes what it sees on the other side."""
    return replace(layers, first=replace(layers.first, output=layers.first.output[::-1]))


@then
def half_the_gain(layers):
    """The uniform head takes back about the leak of one layer."""
    halved = replace(layers.second, output=layers.second.output.at[-1].multiply(0.5))
    return replace(layers, second=halved)


@then
def last_column_twice(columns):
    """F loses a rank, and the maps with it."""
    columns = columns.copy()
    columns[:, 0] = columns[:, 1]
    return columns


@then
def other_weights(result):
    maps, attention = result
    attention[0, 0] = attention[0, 0] + 1
    return maps, attention


@then
def negative_gain(result):
    """One map turned around: the relation has a negative entry."""
    maps, attention = result
    for row in range(maps.nrows()):
        maps[row, 0] = -maps[row, 0] + fmpq(row)
    return maps, attention


def any_combination(original):
    return lambda bases, *args: [(-1) ** number for number in range(len(bases))]


PLANTS = [
    ("depth", "other sizes", BODY, without_the_uniform_head),
    ("depth", "rank of a composition", "draw_layer", one_head_repeated),
    ("depth", "the least totals", "least_total", one_more),
    ("depth", "eight heads, as of two layers of 2 and 4", FLOOR, scaled(10**6)),
    ("depth", "3 × 3, 3 + 3 heads in the limit", LAYERS, blocks_swapped),
    ("depth", "3 × 3, 3 + 4 heads", LAYERS, half_the_gain),
    ("depth", "3 × 3, 3 + 4 heads", LAYERS, blocks_swapped),
    ("depth", "5 × 5, P = 4, 3 + 4 heads", LAYERS, half_the_gain),
    ("rigidity", "one solution", "flattened_kernel", last_column_twice),
    ("rigidity", "one solution", "maps_and_attention", other_weights),
    ("rigidity", "relative attention", "maps_and_attention", other_weights),
    ("rigidity", "one positive relation", "maps_and_attention", negative_gain),
    ("rigidity", "the weight outside", "least_singular_value", scaled(10**4)),
    ("barrier", "Vandermonde's determinant", "draw", equal_bases),
    ("barrier", "the first number that is exact", "draw", equal_bases),
    ("barrier", "sign changes", "combination", any_combination),
    ("barrier", "the best maps", "least_error", scaled(10)),
    ("sharpness", "gaps between two weights", "floor", one_more),
    ("sharpness", "one tap", "floor", one_more),
    ("sharpness", "the price of log N", "least_score", scaled(100)),
    ("sharpness", "stored maps", "floor", one_more),
    ("tiles", "tilings", "tiling", shifted_tiling),
    ("tiles", "tilings", "tiling", stacked_tiling),
    ("tiles", "kernels of one tap for each residue", "tiling", stacked_tiling),
    ("tiles", "K = 9, P = 2: 24 of 25 heads on images", FLOOR, scaled(10**6)),
]  # fmt: skip
