"""Falsehoods about identities: other numbers, other formulas, grids that lie otherwise."""

from certificate_cases import put
from identity_cases import IDENTITIES

from corpora.entry import altered


def grid(sides, shifts, stride=1, **more):
    return {"border": "zero", "grid": sides, "shifts": shifts, "stride": stride, **more}


def image(first, pixels, whole):
    """The matrix that selects pixels one after the other."""
    return [str(int(q == first + a)) for a in range(pixels) for q in range(whole)]


def of(sizes, **tensors):
    """A change of sizes and tensors."""

    def change(body):
        body["sizes"] |= sizes
        body["tensors"] |= tensors

    return change


def tensor(*path_and_value):
    *path, value = path_and_value
    return put(("tensors", *path), value)


def no_graph(body):
    """Two loops at each node instead of two neighbours."""
    unit = [str(int(a == b)) for a in range(5) for b in range(5)]
    body["tensors"] |= {"A": [str(2 * int(x)) for x in unit], "G": unit, "L": ["0"] * 25}


def shifts_past_all(body):
    """Two queries, 0 and 5, of a line of 8, and two shifts that lead out of it from both."""
    body["sizes"] |= {"m": 8, "n": 2, "l": 2, "h": 4, "g": 4}
    unit = [str(int(a == b)) for a in range(4) for b in range(4)]
    rows = [unit[4 * a : 4 * a + 4] for a in range(4)]
    body["tensors"] |= {
        "E": grid([8], [[-6], [-7]], 5),
        "J": [x for row in rows for x in row[:2]],
        "K": [x for row in rows for x in row[2:]],
    }


def nothing_read(body):
    """Uniform heads at the last two of six nodes, and shifts by 3 and 4."""
    body["sizes"] |= {"d": 2, "h": 2, "k": 6, "r": 6}
    body["tensors"] |= {"A": ["1/6"] * 24, "P": ["0"] * 4, "E": grid([6], [[3], [4]])}
    body["tensors"]["l"] = [str(int(q == 4 + a)) for a in range(2) for q in range(6)]


def no_stride(body):
    body["sizes"]["r"] = body["sizes"]["q"]
    for name in "RG":
        body["tensors"][name]["stride"] = 1


SEAM = IDENTITIES["B19.cross-seam"]["body"]["tensors"]
STRIDE = {"k": 2, "m": 4, "q": 4, "r": 2, "z": 1}
GAP = {"a": 3, "b": 3, "d": 2, "k": 6, "q": 6}
ROWS = [[0, -1], [0, 1]]
LINE = [[-1], [0], [1]]
CHANGES = {
    "A19.prop1-inverse": {"dual-family-off": tensor("c", 0, "7")},
    "A19.prop3-bare_grid_composite": {
        "shift-of-the-composite": tensor("B", "shifts", [[0]]),
        "composite-other-way-round": of({}, F=grid([2], [[1]]), B=grid([2], [[-1]])),
    },
    "A19.grid-cuboid": {"cuboid-shift-off": tensor("E", "shifts", 0, 0, 0)},
    "A19.grid-stride": {
        "stride-off-by-one": tensor("G", "stride", 3),
        "outputs-above-inputs": put(("sizes", "r"), 21),
        "stride-zero": tensor("R", "stride", 0),
        "no-stride": no_stride,
        "stride-past-all-shifts": of(
            {"k": 2, "m": 8, "q": 8, "r": 2},
            R=grid([8], [[0]], 5),
            E=grid([8], [[-6], [-7]]),
            G=grid([8], [[-6], [-7]], 5),
        ),
        "stride-on-another-grid": of(
            STRIDE,
            R=grid([4], [[0]], 2),
            E=grid([2, 2], [[0, 0], [0, 1]]),
            G=grid([4], [[0], [1]], 2),
        ),
        "stride-from-pixel-one": of(
            STRIDE, R=grid([4], [[1]], 2), E=grid([4], [[-1], [0]]), G=grid([4], [[0], [1]], 2)
        ),
    },
    "A19.graph-gcn": {
        "gcn-self-loop-lost": tensor("G", 0, "0"),
        "gcn-of-loops": no_graph,
    },
    "B19.softmax-row_sums": {
        "row-sum-off": tensor("A", 0, "1"),
        "weight-zero": tensor("A", 0, "0"),
    },
    "B19.softmax-column_sums": {"columns-that-keep-constants": tensor("A", ["1/3"] * 9)},
    "B19.sac-two_heads": {
        "uniform-share-off": tensor("f", 0, "1/12"),
        "uniform-share-sign": tensor("f", 0, "-1/24"),
        "leak-of-another-head": tensor("L", "leak", "1/4"),
        "leaky-leak-zero": tensor("L", "leak", "0"),
        "leaky-leak-negative": tensor("L", "leak", "-1/2"),
        "leaky-leak-above-one": tensor("L", "leak", "3/2"),
        "leaky-leak-one": tensor("L", "leak", "1"),
        "leaky-on-a-line": tensor("L", grid([12], [[0]], border="leaky", leak="1/3")),
    },
    "B19.sac-limit": {
        "head-looks-beside": tensor("N", "shifts", [[0, 1]]),
        "values-on-another-grid": tensor("N", grid([4, 3], [[0, 0]], border="nearest")),
    },
    "S.boundary-mean": {"mean-without-its-factor": tensor("c", 0, "1")},
    "S.padding-constant_sums": {
        "sums-not-constant": tensor("W", 0, "4"),
        "taps-of-weight-zero": tensor("W", ["0", "1", "0"]),
    },
    "S.lemma3-shared_map": {
        "map-off": tensor("P", 0, "1"),
        "nothing-selected": of({}, l=["0"] * 8, P=["0"] * 12),
        "attention-negative": tensor("A", 0, "-1"),
        "queries-that-read-nothing": nothing_read,
    },
    "B19.cross-seam": {
        "images-overlap": of({}, r=SEAM["l"]),
        "seam-with-a-gap": of(
            {"k": 9, "q": 9}, J=grid([9], LINE), l=image(0, 4, 9), r=image(5, 4, 9)
        ),
        "difference-not-claimed": put(("differ",), []),
    },
    "B19.cross-gap": {
        "selection-negative": tensor("l", 0, "-1"),
        "gap-too-narrow": of({"k": 8, "q": 8}, J=grid([8], LINE), l=SEAM["l"], r=SEAM["r"]),
        "gap-of-zero": of(
            GAP, J=grid([2, 3], ROWS), S=grid([1, 3], ROWS), l=image(0, 3, 6), r=image(3, 3, 6)
        ),
        "gap-along-the-other-axis": of(
            GAP | {"k": 9, "q": 9},
            J=grid([3, 3], ROWS),
            S=grid([1, 3], ROWS),
            l=image(0, 3, 9),
            r=image(6, 3, 9),
        ),
    },
    "B19.language-causal": {
        "filter-reads-a-later-word": tensor("E", "shifts", [[-1], [1]]),
        "shift-far-beyond-the-grid": tensor("E", "shifts", 0, 0, -6),
        "causal-mask-of-ones": tensor("m", ["1"] * 25),
        "filters-not-centred": tensor("F", grid([5], [[1], [2], [3]])),
        "filters-lean-forward": tensor("F", grid([5], [[-1], [1], [2]])),
    },
    "A19.shiftheads-sum": {
        "torus-instead-of-zero": tensor("E", "border", "torus"),
        "shift-more-than-its-index": tensor("E", "shifts", [[-1], [0], [1], [2]]),
        "shift-heads-past-all-shifts": shifts_past_all,
    },
    "S.boundary-edge": {
        "grid-with-fewer-nodes": tensor("E", "grid", [2, 4]),
        "shift-repeated": tensor("E", "shifts", 1, [-2, -2]),
        "grid-of-numbers": tensor("E", ["1"]),
    },
    "B19.lemma1-one_by_one": {
        "shift-of-another-filter": tensor("G", "shifts", [[0, 1]]),
        "one-by-one-on-two-grids": tensor("G", grid([5, 2], [[1, 1]])),
    },
    "A19.attention-masking": {
        "mask-with-a-two": tensor("h", 0, "2"),
        "mask-of-ones": tensor("h", ["1"] * 6),
        "mask-of-a-whole-column": tensor("h", ["1", "0"] * 3),
    },
    "A19.graph-chebyshev": {"identity-matrix-with-a-zero": tensor("I", ["1", "0", "0", "0"])},
    "A19.prop3-composition": {
        "composite-size": put(("sizes", "h"), 7),
        "composite-size-below": put(("sizes", "h"), 5),
    },
    "A19.orders-orders": {
        "formula-transposed": put(("definitions", 1), "Y[bnq] = A[knm] R[bkmq]"),
        "equal-to-itself": put(("equal",), [["Y", "Y"]]),
        "sizes-of-one": put(("sizes", "k"), 1),
        "identity-of-another-claim": put(("identity",), "composition"),
    },
    "A19.gat-redundant": {"numbers-for-symbols": tensor("e", ["1"] * 4)},
}


CERTIFICATES = altered(CHANGES)
