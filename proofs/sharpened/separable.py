"""S.separable: relative additive scores on a rectangle make attention factor over the axes.

Claimed. Where scores are a row term plus a column term and the keys fill a rectangle, attention is
a softmax over rows times one over columns, and costs much less.
True. It is, for relative and absolute positions, and finite scores with such attention have to be
such a sum; a class token, a mask or a cross term can spoil it, but masks to rectangles do not.

Printed. Not from a paper: our own result; the encodings are those of Cordonnier et al. 2020. Where
the scores are a sum f_h(δ_1) + g_h(δ_2) of a row and a column term and the keys fill a rectangle,
as for the quadratic encoding and for learned rows and columns without content, attention is the
outer product of a softmax over rows and one over columns, so that the layer costs O(HW(H + W)·D),
not O(H²W²·D). A class token, a mask or a cross term spoils it, and the one-hot bias is not of this
form.

Verified. The same, ring included, for scores f_h(q_1, k_1) + g_h(q_2, k_2) in general, relative or
not: absolute rows and columns without cross terms are such. Heads whose centres share a coordinate
share that factor. Conversely, if finite scores give attention that is such a product, they are such
a sum, up to a function of the query. Each exclusion has an exact counterexample. Two of them can be
mended: with a class token the image's part of a row is the product times one number for each query;
a mask whose allowed keys are a rectangle k_1 ∈ I(q_1), k_2 ∈ J(q_2) keeps the product. The one-hot
bias factors in the limit with the ring, where every row is one-hot, but not on the bare grid.

Nothing to repair. A Gaussian with a cross term is excluded, one with a diagonal Σ is not.

Proof. e^(f+g) = e^f·e^g, and over a rectangle Σ_(k_1, k_2) e^f e^g = (Σ_(k_1) e^f)(Σ_(k_2) e^g);
divide. Conversely, if w(k_1, k_2) = u(k_1)v(k_2) > 0 then log w, which is the score up to a
constant of the row, is a sum; as u is the same for all q_2 and v for all q_1, f and g depend on one
axis each. Mixing along the rows takes H²W products for each feature and then along the columns HW²,
together HW(H + W); the back end `separable` does so. ∎
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Shaped

from convattn.encodings import (
    AbsoluteEncoding,
    AxialEncoding,
    BiasEncoding,
    GaussianEncoding,
    LearnedEncoding,
    QuadraticEncoding,
    QuadraticGridEncoding,
)
from convattn.encodings.layer import AttentionLayer
from convattn.operators.roundoff import gamma, unit_roundoff
from convattn.operators.shifts import TokenGrid
from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict
from convattn_ledger.evidence import (
    DTYPES,
    applied,
    certified_identities,
    converted,
    exact_convolution,
    integer_kernel,
    proved,
    whole_images,
)
from convattn_ledger.evidence.exact_attention import BASE, exact_softmax
from convattn_ledger.evidence.fast_layers import gradients, gradients_within
from convattn_ledger.evidence.layer_runs import equal, within
from convattn_ledger.evidence.softmax_rounding import weights_within

RING = ((1, 1), (0, 2))
EXP = "exp is within 4 units in the last place, in JAX and in NumPy; products as pinned"


def integer_heads(run: Run, reach: int) -> dict:
    """Heads whose scores are small integers: quadratic ones, and learned tables for such shifts."""
    rng = run.rng("tables")
    tables = tuple(
        jnp.asarray(rng.integers(-1, 2, (2 * reach + 1, features)), float) for features in (2, 3)
    )
    return {
        "quadratic": QuadraticEncoding(jnp.array([1.0, 2.0]), jnp.array([[0.0, 1.0], [-2.0, 3.0]])),
        "learned": LearnedEncoding(jnp.asarray(rng.integers(-2, 3, (2, 5)), float), tables),
    }


def shared_and_absolute(run: Run, keys: tuple[int, int]) -> dict:
    """Centres on a 2 × 2 grid, absolute rows and columns: each as a dense encoding and by axes."""
    rng, ones, two = run.rng("absolute"), jnp.ones(2), np.array([0.0, 2.0])
    pairs = ((0, 0), (0, 1), (1, 0), (1, 1))
    centers = np.stack([two[[i for i, _ in pairs]], -two[[j for _, j in pairs]]], axis=-1)
    free = QuadraticEncoding(jnp.ones(4), jnp.asarray(centers))
    shared = QuadraticGridEncoding((ones, ones), (jnp.asarray(two), jnp.asarray(-two)), pairs)

    def draw(*shape: int) -> np.ndarray:
        return rng.integers(-1, 2, shape).astype(float)

    rows, columns = (draw(side, 2) for side in keys)
    maps = [[draw(2, 2, 3), draw(2, 2, 3)] for _ in ("query", "key")]
    blocks = (
        np.pad(row, ((0, 0), (0, 2), (0, 3))) + np.pad(column, ((0, 0), (2, 0), (3, 0)))
        for row, column in maps
    )
    table = [np.broadcast_to(array, (*keys, 2)) for array in (rows[:, None], columns[None])]
    absolute = AbsoluteEncoding(*map(jnp.asarray, (*blocks, np.concatenate(table, axis=-1))))
    axial = (tuple(map(jnp.asarray, parts)) for parts in (*maps, (rows, columns)))
    return {"centres on a grid": (free, shared), "absolute": (absolute, AxialEncoding(*axial))}


def whole(scores) -> np.ndarray:
    """Scores as integers; those here are."""
    values = np.asarray(scores, np.float64)
    if (values != np.round(values)).any():
        raise EvidenceFailed("the scores are no integers, so their weights are no rationals")
    return values.astype(np.int64)


def exact_factors(run: Run) -> str:
    """Library scores, 3/2 in place of e: dense weights = row weights ⊗ column weights, exactly."""
    grid, summary = TokenGrid((2, 3), RING), []
    cases = {name: (heads, heads) for name, heads in integer_heads(run, 6).items()}
    cases |= shared_and_absolute(run, grid.keys)
    groups = {}

    @jax.jit
    def scores(cases):
        by_encoding = {}
        for name, (full, by_axes) in cases.items():
            axis_scores = by_axes.axis_scores(grid)
            groups[name] = axis_scores.groups  # static, so known when this is traced
            by_encoding[name] = full.positional_scores(grid), *axis_scores.scores
        return by_encoding

    for name, arrays in scores(cases).items():
        dense, rows, columns = map(whole, arrays)
        for head, (row, column) in enumerate(zip(*groups[name], strict=True)):
            weights = exact_softmax(dense[head])
            product = np.kron(exact_softmax(rows[row]), exact_softmax(columns[column]))
            if weights.shape != product.shape or (weights != product).any():
                raise EvidenceFailed(f"{name}, head {head}: the weights differ")
            if (weights == weights[0, 0]).all():
                raise EvidenceFailed(f"{name}, head {head}: uniform, so nothing was seen")
        summary.append(f"{name} on {grid.queries} of {grid.keys}")
    return "; ".join(summary) + ": equal in fractions, all heads and queries"


def is_product(matrix: np.ndarray) -> bool:
    """Whether a matrix is u(i)·v(j); exact, for numbers not all zero."""
    row, column = (int(i) for i in np.argwhere(matrix != 0)[0])
    outer = np.multiply.outer(matrix[:, column], matrix[row])
    return bool((matrix * matrix[row, column] == outer).all())


def is_kronecker(weights: np.ndarray) -> bool:
    """Whether [q_1, q_2, k_1, k_2] is R[q_1, k_1]·C[q_2, k_2]."""
    rows, columns = weights.shape[0] * weights.shape[2], weights.shape[1] * weights.shape[3]
    return is_product(weights.transpose(0, 2, 1, 3).reshape(rows, columns))


def rows_factor(weights: np.ndarray) -> bool:
    """Whether each row alone is a product u(k_1)·v(k_2)."""
    return all(is_product(row) for row in weights.reshape(-1, *weights.shape[2:]))


def on_grid(scores: np.ndarray, sides: tuple[int, int]) -> np.ndarray:
    """Exact weights [q_1, q_2, k_1, k_2] of one head."""
    return exact_softmax(scores).reshape(*sides, *sides)


def exclusions(run: Run) -> str:
    """A class token, a mask, a cross term, the one-hot bias: each off the product, exactly."""
    sides = (3, 3)
    bare = TokenGrid(sides, ((0, 0), (0, 0)))
    ringed = TokenGrid(sides, ((1, 1), (1, 1)))
    center, shift = np.zeros((1, 2)), ((0, 1),)
    encodings = (
        QuadraticEncoding(np.ones(1), center),
        GaussianEncoding(center, np.array([[[2.0, 0.0], [0.0, 4.0]]])),
        GaussianEncoding(center, np.array([[[2.0, 0.0], [2.0, 2.0]]])),
        BiasEncoding(np.array([[3.0]]), None, shift),
        BiasEncoding(np.eye(1), None, shift),
    )

    @jax.jit
    def scores(encodings):
        *first, last = encodings
        tables = [encoding.positional_scores(bare) for encoding in first]
        return [*tables, last.positional_scores(ringed)]

    local, diagonal, skew, bias, looks = (whole(array)[0] for array in scores(encodings))
    with_class = exact_softmax(np.concatenate([local, np.zeros((9, 1), int)], axis=1))
    image_part = with_class[:, :-1].reshape(*sides, *sides)
    powers = np.array([[BASE ** int(s) for s in row] for row in local], object)

    def masked(allowed: np.ndarray) -> np.ndarray:
        masked_powers = powers * allowed
        return (masked_powers / masked_powers.sum(axis=1, keepdims=True)).reshape(*sides, *sides)

    numbers = np.arange(9)
    raster = (numbers[None] <= numbers[:, None]).astype(int)
    rectangle = np.kron(np.tril(np.ones((3, 3), int)), np.tril(np.ones((3, 3), int)))
    shifted = (bias > 0).astype(
        int
    )  # the limit M → ∞: one-hot, or uniform where the key is missing
    limit = np.where(shifted.any(1, keepdims=True), shifted, Fraction(1, 9)).reshape(*sides, *sides)
    cases = (  # what, weights, whether they are R ⊗ C, whether each row is a product
        ("the quadratic encoding", on_grid(local, sides), True, True),
        ("a class token", image_part, False, True),
        ("a causal mask, row-major", masked(raster), False, False),
        ("a mask by rectangles", masked(rectangle), True, True),
        ("a cross term", on_grid(skew, sides), False, False),
        ("a diagonal Gaussian", on_grid(diagonal, sides), True, True),
        ("the one-hot bias", on_grid(bias, sides), False, False),
        ("its limit, bare grid", limit, False, True),
        ("its limit, ring", looks.reshape(3, 3, 5, 5), True, True),
    )  # fmt: skip
    for what, weights, kronecker, by_row in cases:
        properties = is_kronecker(weights), rows_factor(weights)
        if properties != (kronecker, by_row):
            raise EvidenceFailed(
                f"{what}: R ⊗ C {properties[0]}, each row a product {properties[1]}; expected "
                f"{kronecker} and {by_row}"
            )
    total = with_class[:, :-1].sum(axis=1)
    if (with_class[:, :-1] / total[:, None] != exact_softmax(local)).any():
        raise EvidenceFailed("with a class token a number for each query does not mend the product")
    return "; ".join(f"{what}: {'' if yes else 'not '}R ⊗ C" for what, _, yes, _ in cases)


def mixed_difference(
    rows: Shaped[np.ndarray, "rows columns"],
) -> Shaped[np.ndarray, "smaller_rows smaller_columns"]:
    """w(i, j)·w(i+1, j+1) - w(i, j+1)·w(i+1, j): zero everywhere iff positive w is a product."""
    return rows[:-1, :-1] * rows[1:, 1:] - rows[:-1, 1:] * rows[1:, :-1]


def only_sums_factor(run: Run) -> str:
    """Random positive rows: a product iff every mixed difference of the weights vanishes."""

    cases, products = (20 if run.quick else 200), 0
    for case in range(cases):
        rng = run.rng(case)
        u, v = rng.integers(1, 9, 3), rng.integers(1, 9, 4)
        weights = np.outer(u, v).astype(object)
        if case % 2:
            weights[rng.integers(3), rng.integers(4)] += int(rng.integers(1, 5))
        factors = is_product(weights)
        if factors != (mixed_difference(weights) == 0).all() or factors == bool(case % 2):
            raise EvidenceFailed(f"case {case}: {weights.tolist()}")
        products += factors
    return f"{cases} rows of 3 × 4 keys, {products} of them products: mixed differences tell"


def soft_heads(run: Run, sides: tuple[int, int]) -> dict:
    """Encodings on a bare grid, and their integer scores: for each head those of rows, of columns.

    The scores are computed here, from the definitions: -α(δ - Δ)², and q·r_δ of a table.
    """
    rng = run.rng("soft heads")
    down, across = (np.arange(side)[None] - np.arange(side)[:, None] for side in sides)
    tables = [
        rng.integers(-1, 2, (2 * side - 1, width))
        for side, width in zip(sides, (2, 3), strict=True)
    ]
    query = rng.integers(-2, 3, (2, 5))
    learned = LearnedEncoding(
        jnp.asarray(query, float), tuple(jnp.asarray(table, float) for table in tables)
    )
    by_table = [
        (tables[0][down + sides[0] - 1] @ q[:2], tables[1][across + sides[1] - 1] @ q[2:])
        for q in query
    ]
    alpha, centers = ((1.0, 2.0), (1.0,)), ((0.0, -2.0), (1.0,))
    grid = QuadraticGridEncoding(
        tuple(map(jnp.array, alpha)), tuple(map(jnp.array, centers)), ((0, 0), (1, 0))
    )
    squares = [(-((down - 0) ** 2), -((across - 1) ** 2))]
    squares += [(-2 * (down + 2) ** 2, -((across - 1) ** 2))]
    return {"learned": (learned, by_table), "quadratic": (grid, squares)}


def axes_on_images(run: Run) -> str:
    """Soft heads on whole images through the back end, against dense heads in NumPy.

    With |R̂ - R| ≤ B_R and |Ĉ - C| ≤ B_C a weight is within (R + B_R)(C + B_C) - RC. In whatever
    order axes, F features and h heads are summed, a path has at most n = h(H + W + F + 1) products
    and additions, which add γ_n Σ (R + B_R)(C + B_C)|X||M|. All of this is a sum over the axes too.
    """
    images = whole_images(run)[:2]
    batch, height, width, features = images.shape
    flat = images.reshape(batch, height * width, features)
    summary = []

    def mixed(rows: np.ndarray, columns: np.ndarray, maps: np.ndarray) -> np.ndarray:
        return np.einsum("ik,jl,bklf,fo->bijo", rows, columns, images, np.abs(maps), optimize=True)

    for name, (encoding, scores) in soft_heads(run, (height, width)).items():
        maps = run.rng(name).integers(-3, 4, (len(scores), features, 4))
        paths = len(scores) * (height + width + features + 1)
        reference, off = 0.0, 0.0
        for (rows, columns), head in zip(scores, maps, strict=True):
            dense = weights_within(
                (rows[:, None, :, None] + columns[None, :, None, :]).reshape(flat.shape[1], -1),
                "float64",
            )
            reference = reference + dense.reference @ (flat @ head)
            off = off + dense.bound @ (flat @ np.abs(head))
        reference = reference.reshape(batch, height, width, -1)
        for dtype in ("float64", "float32")[name == "learned" :]:
            bound, own = off.reshape(reference.shape), paths + height * width
            for (rows, columns), head in zip(scores, maps, strict=True):
                down, across = (weights_within(axis, dtype) for axis in (rows, columns))
                exact = mixed(down.reference, across.reference, head)
                largest = mixed(down.reference + down.bound, across.reference + across.bound, head)
                bound = bound + largest - exact + gamma(paths, unit_roundoff(dtype)) * largest
                bound = bound + gamma(own, unit_roundoff("float64")) * largest
            layer = jax.tree.map(
                lambda array, d=dtype: np.asarray(array, d), AttentionLayer(encoding, None, maps)
            )
            result = applied(layer, images, dtype, backend="separable")
            bound = bound * (1 + 2.0**-20) + 2.0**-100
            within(f"{name} {dtype}", result, reference, bound)
            worst = float(np.abs(np.asarray(result, np.float64) - reference).max())
            summary.append(f"{name} {dtype} off by {worst:.2g} ≤ {bound.max():.2g}")
    return f"{batch} images, N = {height * width}, axis by axis: " + ", ".join(summary)


def convolution_by_axes(run: Run) -> str:
    """One-hot quadratic heads with their ring, through the back end: equal to the convolution."""
    images = whole_images(run)
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
    expected = exact_convolution(images, kernel)
    whole_layer = converted(kernel, "float64", encoding="quadratic")
    comparisons = []
    for dtype in DTYPES:
        layer = jax.tree.map(lambda array, d=dtype: np.asarray(array, jnp.dtype(d)), whole_layer)
        result = applied(layer, images, dtype, backend="separable")
        comparisons.append(equal(dtype, result, expected))
    height, width = (side + 2 for side in images.shape[1:3])
    dense, axes = (height * width) ** 2, height * width * (height + width)
    return (
        f"{len(images)} images, {', '.join(comparisons)}; {dense / axes:.1f} times fewer products"
    )


def one_hot_gradients(run: Run) -> str:
    """Gradients of one-hot heads on a grid, on whole images: integers, so they are equal.

    By the images: the cotangent convolved with the kernel turned around. By the map of the head at
    δ: Σ_q X_(q+δ)ᵗ Y'_q.
    """
    images = whole_images(run)[:2]
    kernel = integer_kernel(run.rng("kernel"), (3, 3), 3, 4)
    layer = converted(kernel, "float64", encoding="quadratic")
    cotangent = run.rng("cotangent").integers(-9, 10, (*images.shape[:-1], 4))
    typed = jnp.asarray(images, float), jnp.asarray(cotangent, float)
    of_layer, of_images = gradients("separable", layer, *typed)
    turned = kernel[::-1, ::-1].swapaxes(2, 3)
    equal("float64", of_images, exact_convolution(cotangent, turned))
    padded = np.pad(images, [(0, 0), (1, 1), (1, 1), (0, 0)])
    height, width = images.shape[1:3]
    centers = [whole(axis) for axis in layer.encoding.centers]
    by_maps = []
    for pair in layer.encoding.pairs:
        down, across = (1 + axis[index] for axis, index in zip(centers, pair, strict=True))
        shifted = padded[:, down : down + height, across : across + width]
        by_maps.append(np.einsum("bijf,bijo->fo", shifted, cotangent))
    equal("float64", of_layer.output, np.stack(by_maps))
    return f"{len(images)} images, {layer.heads} one-hot heads on a grid: gradients equal"


def soft_gradients(run: Run) -> str:
    """All gradients of free soft heads on a crop with a ring, in float64, against dense."""
    crop = whole_images(run)[:1, 12:17, 11:17] - 128
    rng = run.rng("learned")

    def draw(*shape: int) -> object:
        return jnp.asarray(rng.integers(-3, 4, shape), float)

    keys = [side + sum(ring) for side, ring in zip(crop.shape[1:3], RING, strict=True)]
    tables = tuple(draw(2 * n - 1, width) / 4 for n, width in zip(keys, (2, 3), strict=True))
    layer = AttentionLayer(LearnedEncoding(draw(2, 5), tables), None, draw(2, 3, 4), ring=RING)
    cotangent = draw(*crop.shape[:-1], 4)
    return gradients_within("separable", layer, jnp.asarray(crop, float), cotangent)


def gradients_by_axes(run: Run) -> str:
    """Both ways in which the back end arranges its products, each with its written derivative."""
    return f"{one_hot_gradients(run)}; {soft_gradients(run)}"


CLAIM = Claim(
    id="S.separable",
    source="this project, sharpening C20 §4.3 and eq. 9",
    verdict=Verdict.HOLDS,
    kinds=(Kind.IDENTITY, Kind.LAYER_EQUALITY),
    evidence=(
        proved(
            "sharpened/separable.v",
            covers="scores that are sums factor, over a rectangle of two axes, and attention is "
            "two passes; not: masks, class tokens, cross terms, the cost",
        ),
        proved(
            "sharpened/separable_converse.v",
            covers="if the attention at finite scores is u(q_1, k_1)·v(q_2, k_2) for all queries "
            "and keys of two axes, the scores are sums, up to a term of the query",
        ),
        certified_identities("S.separable", "every row", "separable", pattern="separable"),
        certified_identities("S.separable", "the layer, axis by axis", "layer", pattern="layer"),
        Evidence("factors in fractions", Level.TESTED, exact_factors, quick=False),
        Evidence("exclusions", Level.TESTED, exclusions, quick=False),
        Evidence("only sums factor", Level.TESTED, only_sums_factor),
        Evidence("axes on images", Level.BOUNDED, axes_on_images, assumes=EXP, quick=False),
        Evidence(
            "convolution by axes",
            Level.BOUNDED,
            convolution_by_axes,
            assumes="exp underflows to zero; integer sums below 2^24, and 2^53, are exact",
            quick=False,
        ),
        Evidence(
            "gradients of the fast back end",
            Level.BOUNDED,
            gradients_by_axes,
            assumes=EXP,
            quick=False,
        ),
    ),
)
