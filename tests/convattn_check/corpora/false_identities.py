"""Falsehoods about identities: other numbers, other formulas, grids that lie otherwise."""

from certificate_cases import put
from identity_cases import IDENTITIES

from corpora.entry import falsehoods


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
TABLE = {
    "false": [
        ("dual-family-off", "A19.prop1-inverse", tensor("c", 0, "7"), "identity", "D[0, 0] is",
         "c is not dual to a"),
        ("shift-of-the-composite", "A19.prop3-bare_grid_composite", tensor("B", "shifts", [[0]]),
         "identity", "C[0, 0] is", "A_0 A_-1 is A_-1"),
        ("composite-other-way-round", "A19.prop3-bare_grid_composite", of({},
         F=grid([2], [[1]]), B=grid([2], [[-1]])), "identity", "C[0, 0] is 0, but G[0, 0] is 1",
         "A_-1 A_1 is diag(0, 1)"),
        ("cuboid-shift-off", "A19.grid-cuboid", tensor("E", "shifts", 0, 0, 0), "identity",
         "is 0, but", "the shift (0, -2) is no product of those of the axes"),
        ("stride-off-by-one", "A19.grid-stride", tensor("G", "stride", 3), "tensors",
         "tensors.G has the shape", "every third output, not every second"),
        ("gcn-self-loop-lost", "A19.graph-gcn", tensor("G", 0, "0"), "identity",
         "P[0, 0] is 0, but Q[0, 0] is 1", "a node of a graph convolution network sees itself"),
        ("gcn-of-loops", "A19.graph-gcn", no_graph, "identity", "A[0, 0] is 2, but B[0, 0] is 4",
         "2I is no adjacency matrix"),
        ("row-sum-off", "B19.softmax-row_sums", tensor("A", 0, "1"), "identity", "R[0] is",
         "a row of A sums to more than one"),
        ("columns-that-keep-constants", "B19.softmax-column_sums", tensor("A", ["1/3"] * 9),
         "identity", "Y and V are the same, expected two that differ",
         "where rows sum to one as well, no constant is changed"),
        ("uniform-share-off", "B19.sac-two_heads", tensor("f", 0, "1/12"), "identity",
         "Y[0, 0] is -1/24*x8192*x12288 + 23/24*x8192*x12300 + ",
         "the uniform head takes back another share"),
        ("uniform-share-sign", "B19.sac-two_heads", tensor("f", 0, "-1/24"), "identity",
         "Y[0, 0] is", "the uniform head adds what it should take back"),
        ("leak-of-another-head", "B19.sac-two_heads", tensor("L", "leak", "1/4"), "identity",
         "Y[0, 0] is", "the factors belong to the leak 1/3"),
        ("head-looks-beside", "B19.sac-limit", tensor("N", "shifts", [[0, 1]]), "identity",
         "Y[0, 0] is", "the head attends to its neighbour"),
        ("mean-without-its-factor", "S.boundary-mean", tensor("c", 0, "1"), "identity",
         "Y[0, 0] is", "the factor 1/(1 - ε) is missing"),
        ("sums-not-constant", "S.padding-constant_sums", tensor("W", 0, "4"), "identity",
         "T[", "the taps inside the grid no longer have one sum"),
        ("map-off", "S.lemma3-shared_map", tensor("P", 0, "1"), "identity", "S[0, 0, 0] is",
         "the map does not make the shift matrices"),
        ("nothing-selected", "S.lemma3-shared_map", of({}, l=["0"] * 8, P=["0"] * 12), "identity",
         "U[0, 0] is 0", "l selects no query"),
        ("images-overlap", "B19.cross-seam", of({}, r=SEAM["l"]), "identity",
         "C[0, 0] is 1, but D[0, 0] is 0", "the same image twice, not one beside the other"),
        ("selection-negative", "B19.cross-gap", tensor("l", 0, "-1"), "identity",
         "u[0, 0] is 1, but l[0, 0] is -1", "-1 squared is 1: the sign alone tells"),
        ("gap-too-narrow", "B19.cross-gap", of({"k": 8, "q": 8}, J=grid([8], LINE), l=SEAM["l"],
         r=SEAM["r"]), "identity", "Q[", "without the gap the filters read across"),
        ("seam-with-a-gap", "B19.cross-seam", of({"k": 9, "q": 9}, J=grid([9], LINE),
         l=image(0, 4, 9), r=image(5, 4, 9)), "identity", "Q and O are the same",
         "with a gap nothing is read across: there is no seam"),
        ("filter-reads-a-later-word", "B19.language-causal", tensor("E", "shifts", [[-1], [1]]),
         "identity", "P[", "the shift 1 reads the next word"),
        ("torus-instead-of-zero", "A19.shiftheads-sum", tensor("E", "border", "torus"), "tensors",
         "has the border 'torus', expected 'zero'", "shift matrices that go round"),
        ("grid-with-fewer-nodes", "S.boundary-edge", tensor("E", "grid", [2, 4]), "tensors",
         "joins no two nodes of the grid", "a shift by 2 on two rows"),
        ("shift-repeated", "S.boundary-edge", tensor("E", "shifts", 1, [-2, -2]), "tensors",
         "repeats a shift", "the same shift twice"),
        ("shift-of-another-filter", "B19.lemma1-one_by_one", tensor("G", "shifts", [[0, 1]]),
         "tensors", "tensors.G has the shifts [[0, 1]]", "with the floor both axes are shifted"),
        ("weight-zero", "B19.softmax-row_sums", tensor("A", 0, "0"), "tensors",
         "expected it to be positive", "a softmax is positive"),
        ("attention-negative", "S.lemma3-shared_map", tensor("A", 0, "-1"), "tensors",
         "expected it to be positive", "a negative weight"),
        ("mask-with-a-two", "A19.attention-masking", tensor("h", 0, "2"), "tensors",
         "expected it to be mask", "a mask holds zeros and ones"),
        ("identity-matrix-with-a-zero", "A19.graph-chebyshev", tensor("I", ["1", "0", "0", "0"]),
         "tensors", "expected 'identity'", "T_0 is the identity, not a projection"),
        ("composite-size", "A19.prop3-composition", put(("sizes", "h"), 7), "sizes",
         "index h has size 7, expected 6, the product of kl", "2 · 3 products, not 7"),
        ("composite-size-below", "A19.prop3-composition", put(("sizes", "h"), 5), "sizes",
         "index h has size 5, expected 6, the product of kl", "2 · 3 products, not 5"),
        ("outputs-above-inputs", "A19.grid-stride", put(("sizes", "r"), 21), "sizes",
         "index r has size 21, expected less than q's, 20", "a stride gives fewer outputs"),
        ("shift-more-than-its-index", "A19.shiftheads-sum", tensor("E", "shifts", [[-1], [0], [1],
         [2]]), "tensors", "tensors.E has the shape (4, 4, 4), expected (3, 4, 4)",
         "four shifts where the index has three values"),
        ("grid-of-numbers", "S.boundary-edge", tensor("E", ["1"]), "malformed",
         "tensors.E.border is None", "numbers where a grid gives the matrix"),
        ("stride-zero", "A19.grid-stride", tensor("R", "stride", 0), "range",
         "tensors.R.stride is 0, expected 1 to 64", "a stride of 0 goes nowhere"),
        ("shift-far-beyond-the-grid", "B19.language-causal", tensor("E", "shifts", 0, 0, -6),
         "tensors", "which joins no two nodes of the grid", "a shift by 6 on five words"),
        ("leaky-leak-zero", "B19.sac-two_heads", tensor("L", "leak", "0"), "range",
         "leak is '0', expected 0 < ε < 1", "a softmax at finite scores leaks"),
        ("leaky-leak-negative", "B19.sac-two_heads", tensor("L", "leak", "-1/2"), "range",
         "leak is '-1/2', expected 0 < ε < 1", "the other weights of the softmax are negative"),
        ("leaky-leak-above-one", "B19.sac-two_heads", tensor("L", "leak", "3/2"), "range",
         "leak is '3/2', expected 0 < ε < 1", "the weight at the shift is negative"),
        ("leaky-leak-one", "B19.sac-two_heads", tensor("L", "leak", "1"), "range",
         "leak is '1', expected 0 < ε < 1", "with a leak of 1 all heads are uniform"),
        ("formula-transposed", "A19.orders-orders", put(("definitions", 1),
         "Y[bnq] = A[knm] R[bkmq]"), "claim", "definitions is", "the basis is transposed"),
        ("equal-to-itself", "A19.orders-orders", put(("equal",), [["Y", "Y"]]), "claim",
         "equal is [['Y', 'Y']]", "Y = Y says nothing"),
        ("difference-not-claimed", "B19.cross-seam", put(("differ",), []), "claim",
         "differ is []", "that filters read across the seam is left out"),
    ],
    "vacuous": [
        ("taps-of-weight-zero", "S.padding-constant_sums", tensor("W", ["0", "1", "0"]), "tensors",
         "expected it to be nonzero", "one tap under the name of three"),
        ("mask-of-ones", "A19.attention-masking", tensor("h", ["1"] * 6), "tensors",
         "expected it to be mask", "a mask that masks nothing"),
        ("mask-of-a-whole-column", "A19.attention-masking", tensor("h", ["1", "0"] * 3), "tensors",
         "expected it to be mask", "a column with no key left: its softmax is 0/0"),
        ("causal-mask-of-ones", "B19.language-causal", tensor("m", ["1"] * 25), "tensors",
         "expected 'causal'", "without a mask nothing is causal"),
        ("numbers-for-symbols", "A19.gat-redundant", tensor("e", ["1"] * 4), "tensors",
         "expected 'symbols'", "true of these numbers, and claimed for all"),
        ("sizes-of-one", "A19.orders-orders", put(("sizes", "k"), 1), "sizes",
         "index k has size 1, expected at least 2", "with one basis matrix no order matters"),
        ("no-stride", "A19.grid-stride", no_stride, "sizes", "expected less than q's, 20",
         "a stride of 1 drops no output"),
        ("stride-past-all-shifts", "A19.grid-stride", of({"k": 2, "m": 8, "q": 8, "r": 2},
         R=grid([8], [[0]], 5), E=grid([8], [[-6], [-7]]), G=grid([8], [[-6], [-7]], 5)), "layout",
         "expected read", "no output that is kept reads anything: 0 = 0"),
        ("shift-heads-past-all-shifts", "A19.shiftheads-sum", shifts_past_all, "layout",
         "expected read", "the shift matrices are zero at every query of this stride"),
        ("queries-that-read-nothing", "S.lemma3-shared_map", nothing_read, "layout",
         "expected read", "both shifts lead out of the grid from both queries, so that P = 0 does"),
    ],
    # Both sides are the same; only the way the grids lie speaks against the sentence.
    "label": [
        ("stride-on-another-grid", "A19.grid-stride", of(STRIDE, R=grid([4], [[0]], 2),
         E=grid([2, 2], [[0, 0], [0, 1]]), G=grid([4], [[0], [1]], 2)), "layout",
         "expected sampled", "a grid of 2 × 2 nodes is sampled as if it were a line of four"),
        ("stride-from-pixel-one", "A19.grid-stride", of(STRIDE, R=grid([4], [[1]], 2),
         E=grid([4], [[-1], [0]]), G=grid([4], [[0], [1]], 2)), "layout", "expected sampled",
         "the sample begins at pixel 1"),
        ("filters-not-centred", "B19.language-causal", tensor("F", grid([5], [[1], [2], [3]])),
         "layout", "expected centred", "filters that read only later words are not centred"),
        ("filters-lean-forward", "B19.language-causal", tensor("F", grid([5], [[-1], [1], [2]])),
         "layout", "expected centred", "-1, 1 and 2 are not centred"),
        ("gap-of-zero", "B19.cross-gap", of(GAP, J=grid([2, 3], ROWS), S=grid([1, 3], ROWS),
         l=image(0, 3, 6), r=image(3, 3, 6)), "layout", "expected apart",
         "the images touch, above each other, and the filters run along the rows"),
        ("gap-along-the-other-axis", "B19.cross-gap", of(GAP | {"k": 9, "q": 9},
         J=grid([3, 3], ROWS), S=grid([1, 3], ROWS), l=image(0, 3, 9), r=image(6, 3, 9)),
         "layout", "expected apart", "a gap where no filter reads anyway"),
        ("one-by-one-on-two-grids", "B19.lemma1-one_by_one", tensor("G", grid([5, 2], [[1, 1]])),
         "layout", "expected one grid", "the two filters are on different grids"),
        ("values-on-another-grid", "B19.sac-limit", tensor("N", grid([4, 3], [[0, 0]],
         border="nearest")), "layout", "expected one grid", "heads on 4 × 3, filters on 3 × 4"),
        ("leaky-on-a-line", "B19.sac-two_heads", tensor("L", grid([12], [[0]], border="leaky",
         leak="1/3")), "layout", "expected one grid", "heads on a line, filters on 3 × 4"),
        ("identity-of-another-claim", "A19.orders-orders", put(("identity",), "composition"),
         "claim", "A19.orders needs one of the identities ['orders']",
         "the name of another claim's identity"),
    ],
}  # fmt: skip


def named(rows):
    return [(slug, IDENTITIES[case], *rest) for slug, case, *rest in rows]


ENTRIES = [each for fault, rows in TABLE.items() for each in falsehoods(named(rows), fault)]
