import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from token_grids import GRIDS, compiled_scores, slow_shift_scores

from convattn.encodings.axial_rotary import AxialRotaryEncoding
from convattn.encodings.axis_scores import sum_over_axes
from convattn.encodings.rotary import RotaryEncoding, axial_turns, rotary_heads
from convattn.operators.shifts import TokenGrid

EPS = np.finfo(float).eps


@pytest.mark.parametrize("grid", GRIDS)
def test_scores_are_those_of_turned_queries_and_keys(grid):
    """Queries and keys turned by absolute positions, as RoFormer's eq. 16 does it."""
    rng = np.random.default_rng(len(grid.queries))
    axes, heads, pairs = len(grid.queries), 2, 3
    turns = rng.normal(size=(heads, pairs, axes)) / 4
    u, w = (rng.normal(size=(heads, pairs, 2)) @ [1, 1j] for _ in range(2))
    amplitude = u * w.conj()
    encoding = RotaryEncoding(*map(jnp.asarray, (turns, amplitude.real, amplitude.imag)))

    def turned(vector, places):
        return vector[:, None] * np.exp(2j * np.pi * np.einsum("pa,hja->hpj", places, turns))

    queries, keys = turned(u, grid.query_positions), turned(w, grid.key_positions)
    expected = np.einsum("hqj,hkj->hqk", queries, keys.conj()).real
    reach = 2 * np.pi * np.abs(turns).max() * sum(grid.keys)
    assert_within(compiled_scores(encoding, grid), expected, 100 * reach * EPS * pairs * 20)


@pytest.mark.parametrize("grid", GRIDS)
def test_dyadic_turns_give_integers_and_zeros_of_the_cosine(grid):
    axes = len(grid.queries)
    turns = np.concatenate([np.eye(axes) / 2, np.eye(axes) / 4])
    target = (2, -1)[:axes]

    def score(head, shift):
        steps = [s - t for s, t in zip(shift, target, strict=True)]
        return sum((-1) ** d + (1, 0, -1, 0)[d % 4] for d in steps)

    encoding = rotary_heads(turns, [target], 1.0)
    assert_within(compiled_scores(encoding, grid), slow_shift_scores(grid, 1, score), 32 * EPS)


def test_frequencies_of_sequences_and_images():
    assert_within(
        2 * np.pi * axial_turns(32, base=1e4)[:, 0], 1e4 ** (-np.arange(32) / 32), 4 * EPS
    )
    image = axial_turns(16, 2, base=100.0)
    assert image.shape == (32, 2)
    assert ((image == 0).sum(axis=1) == 1).all()
    assert_equal(axial_turns(3)[:, 0], [0.5, 0.25, 0.125])
    for wrong in ({"pairs": 0}, {"pairs": 1, "axes": 0}, {"pairs": 2, "base": 1.0}):
        with pytest.raises(ValueError, match="but expected at least one pair"):
            axial_turns(**wrong)


def test_any_two_of_two_to_the_n_tokens_differ_by_half_a_turn_in_some_pair():
    """In integers: d/2^j is half a turn for j one above the power of two in d."""
    for pairs in (1, 4, 10):
        steps = np.arange(1, 2**pairs)
        turned = steps[:, None] % 2 ** np.arange(1, pairs + 1)
        assert (turned == 2 ** np.arange(pairs)).any(axis=1).all()


@pytest.mark.slow
def test_shifts_beyond_those_that_are_told_apart_are_refused():
    encoding = rotary_heads(axial_turns(2, 2), [(0, 0)], 1.0, (3, 1))
    encoding.positional_scores(TokenGrid((4, 2), ((0, 0), (0, 0))))
    for sides in ((5, 2), (4, 3)):
        with pytest.raises(ValueError, match=r"expected at most \(3, 1\), beyond which the angles"):
            encoding.positional_scores(TokenGrid(sides, ((0, 0), (0, 0))))


@pytest.mark.parametrize(
    "shapes",
    [
        ((1, 2, 1), (1, 3), (1, 2), ()),
        ((1, 2, 1), (1, 2), (1, 1), ()),
        ((1, 2, 2), (1, 2), (1, 2), (7,)),
    ],
)
def test_parts_that_do_not_fit_are_refused(shapes):
    *arrays, largest = shapes
    with pytest.raises(ValueError, match="one number of pairs and of axes"):
        RotaryEncoding(*map(jnp.ones, arrays), largest).check()


@pytest.mark.slow
@pytest.mark.parametrize("grid", GRIDS)
def test_axial_parts_are_the_whole_with_zeros_beside(grid):
    rng = np.random.default_rng(len(grid.keys))
    parts = [[jnp.asarray(rng.normal(size=(2, 3))) for _ in grid.keys] for _ in range(3)]
    axial = AxialRotaryEncoding(*map(tuple, parts))
    turns = jnp.einsum("aht,ab->hatb", jnp.stack(parts[0]), jnp.eye(len(grid.keys)))
    joint = RotaryEncoding(
        turns.reshape(2, -1, len(grid.keys)), *(jnp.concatenate(p, axis=1) for p in parts[1:])
    )
    scores = joint.positional_scores(grid)
    assert_within(compiled_scores(axial, grid), scores, 1000 * EPS)
    assert_within(sum_over_axes(axial.axis_scores(grid)), scores, 1000 * EPS)


def test_axes_that_do_not_fit_are_refused():
    one = jnp.ones((1, 2))
    for parts, message in (
        (((one, one), (one,), (one, one), ()), "of 2, 1, 2 axes"),
        (((one,), (one,), (one,), (1, 1)), "expected as many of each"),
        (((one,), (one,), (jnp.ones((1, 3)),), ()), "one number of pairs"),
    ):
        with pytest.raises(ValueError, match=message):
            AxialRotaryEncoding(*parts).check()
    limited = AxialRotaryEncoding((one, one), (one, one), (one, one), (3, 1))
    with pytest.raises(ValueError, match="expected at most"):
        limited.axis_scores(TokenGrid((4, 3), ((0, 0), (0, 0))))
