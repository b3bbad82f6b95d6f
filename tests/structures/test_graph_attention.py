"""Graph attention against loops after its authors' equations, and A19's way of writing it."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from matrix_products import HIGHEST, precisions
from strategies import small_integers

from convattn.ledger.evidence.influence_rounding import attention_within, column_weights_within
from convattn.structures import (
    BiAffine,
    bi_affine,
    bi_affine_scores,
    column_softmax,
    graph_attention,
    graph_attention_matrices,
    leaky_relu,
    self_attention_convolution,
    through_parameter,
)

BATCH, HEADS, NODES, P, Q = 2, 3, 5, 4, 2


def drawn(seed: int):
    """x, a directed graph with self-loops `[keys, queries]`, Θ, and the halves of a: ν, μ."""
    rng = np.random.default_rng(seed)
    mask = rng.random((NODES, NODES)) < 0.5
    np.fill_diagonal(mask, True)
    x, theta = small_integers(rng, BATCH, NODES, P), small_integers(rng, HEADS, P, Q)
    return x, mask, theta, small_integers(rng, HEADS, Q), small_integers(rng, HEADS, Q)


def velickovic(nodes, neighbours, weight, own, other, slope):
    """h'_i = Σ_(j ∈ N_i) α_ij W h_j, without σ, one head, one node at a time.

    e_ij = LeakyReLU(aᵀ[W h_i ‖ W h_j]), α_ij = exp(e_ij)/Σ_(k ∈ N_i) exp(e_ik), with a = [own ‖
    other]; `weight` is W, `[Q, P]`.
    """
    out, mapped = [], [weight @ node for node in nodes]
    for i in range(len(nodes)):
        scores = {}
        for j in neighbours[i]:
            raw = float(np.concatenate([own, other]) @ np.concatenate([mapped[i], mapped[j]]))
            scores[j] = raw if raw > 0 else slope * raw
        total = sum(math.exp(score) for score in scores.values())
        out.append(sum(math.exp(scores[j]) / total * mapped[j] for j in scores))
    return np.array(out)


def layer_by_loops(x, mask, theta, own, other, slope):
    """`[batch, heads, nodes, Q]`."""
    neighbours = [np.flatnonzero(mask[:, i]) for i in range(NODES)]
    heads = list(zip(theta, own, other, strict=True))
    return np.array(
        [[velickovic(nodes, neighbours, t.T, o, r, slope) for t, o, r in heads] for nodes in x]
    )


def within(x, mask, theta, own, other, slope):
    """The bound for one head and image; 0.2 and the product with it round, two roundings each."""
    bounds = np.empty((BATCH, HEADS, NODES, Q))
    for b in range(BATCH):
        for k in range(HEADS):
            z = x[b] @ theta[k]
            raw = (z @ other[k])[:, None] + (z @ own[k])[None, :]
            scores = np.where(raw >= 0, raw, slope * raw)
            error = 0.0 if slope == 0.25 else 4 * 2.0**-53 * abs(scores).max()
            weights = column_weights_within(scores[None], "float64", mask, error)
            bounds[b, k] = attention_within(weights, x[b], theta[k][None], "float64").bound
    return bounds


@pytest.mark.parametrize("slope", [0.2, 0.25])
@pytest.mark.parametrize("seed", range(2))
def test_it_is_the_layer_of_its_authors(seed, slope):
    x, mask, theta, own, other = drawn(seed)
    heads = layer_by_loops(x, mask, theta, own, other, slope)
    bound = 2 * within(x, mask, theta, own, other, slope)  # theirs and ours
    given = jnp.asarray(x), jnp.asarray(mask), jnp.asarray(theta)
    parameters = bi_affine(key_weight=other, query_weight=own)
    expected = {
        "sum": (heads.sum(1), bound.sum(1)),
        "mean": (heads.mean(1), bound.sum(1)),
        "concatenate": (
            heads.transpose(0, 2, 1, 3).reshape(BATCH, NODES, -1),
            bound.transpose(0, 2, 1, 3).reshape(BATCH, NODES, -1),
        ),
    }
    for combination, (value, limit) in expected.items():
        out = graph_attention(*given, parameters, slope=slope, combination=combination)
        assert_within(out, value, limit, combination)
    swapped = bi_affine(key_weight=own, query_weight=other)
    with pytest.raises(AssertionError, match="too far"):
        assert_within(graph_attention(*given, swapped, slope=slope), *expected["sum"])
    backwards = graph_attention(given[0], given[1].T, given[2], parameters, slope=slope)
    with pytest.raises(AssertionError, match="too far"):
        assert_within(backwards, *expected["sum"])


@pytest.mark.parametrize("seed", range(2))
def test_scores_on_x_theta_are_scores_on_x_with_tied_parameters(seed):
    """Λ too, though the networks have none."""
    x, _, theta, own, other = drawn(seed)
    rng = np.random.default_rng(seed + 1)
    parameters = bi_affine(small_integers(rng, HEADS, Q, Q), other, own, small_integers(rng, HEADS))
    tied = through_parameter(parameters, jnp.asarray(theta))
    expected = np.empty((BATCH, HEADS, NODES, NODES))
    for k in range(HEADS):
        z = jnp.asarray(x @ theta[k])
        one = jax.tree.map(lambda part, k=k: part[k : k + 1], parameters)
        expected[:, k] = bi_affine_scores(z, z, one)[:, 0]
    assert_equal(bi_affine_scores(jnp.asarray(x), jnp.asarray(x), tied), expected)


def test_it_is_a_self_attention_convolution():
    """Mechanism and convolution apart; scores with the slope 1/4 are exact."""
    x, mask, theta, own, other = drawn(5)
    parameters = bi_affine(None, other, own, [1.0, 2.0, 3.0])
    tied = through_parameter(parameters, jnp.asarray(theta))

    def mechanism(keys, queries):
        scores = leaky_relu(bi_affine_scores(keys, queries, tied), 0.25)
        return column_softmax(scores, jnp.asarray(mask))

    expected = self_attention_convolution(jnp.asarray(x), mechanism, jnp.asarray(theta))
    out = graph_attention(
        jnp.asarray(x), jnp.asarray(mask), jnp.asarray(theta), parameters, slope=0.25
    )
    mapped = jnp.einsum("bmp,kpq->bkmq", x, theta)
    matrices = graph_attention_matrices(mapped, jnp.asarray(mask), parameters, slope=0.25)
    assert_equal(mechanism(jnp.asarray(x), jnp.asarray(x)), matrices)
    scores = np.asarray(leaky_relu(bi_affine_scores(jnp.asarray(x), jnp.asarray(x), tied), 0.25))
    for b in range(BATCH):
        weights = column_weights_within(scores[b], "float64", mask)
        reference, bound = attention_within(weights, x[b], theta, "float64")
        assert_within(out[b], reference, bound)
        assert_within(expected[b], reference, bound)


def test_a_leaky_relu_keeps_the_mask_and_another_does_not():
    scores = jnp.array([-jnp.inf, -4.0, 0.0, 2.0])
    assert_equal(leaky_relu(scores, 0.25), [-np.inf, -1.0, 0.0, 2.0])
    assert_equal(leaky_relu(scores, 1.0), scores)
    assert_equal(jax.nn.relu(scores), [0.0, 0.0, 0.0, 2.0])
    for slope in (0.0, -0.2, 1.5, float("nan")):
        with pytest.raises(ValueError, match=r"but expected to lie in \(0, 1\]"):
            leaky_relu(scores, slope)


def test_a_node_without_neighbours_is_refused_or_gets_nothing():
    x, mask, theta, own, other = drawn(7)
    mask[:, 3] = False
    given = jnp.asarray(x), jnp.asarray(mask), jnp.asarray(theta), bi_affine(None, other, own)
    with pytest.raises(ValueError, match="column 3 is masked everywhere"):
        graph_attention(*given)
    out = np.asarray(graph_attention(*given, blank="zero"))
    assert not out[:, 3].any()
    assert out[:, 0].any()


def test_every_product_is_pinned():
    x, mask, theta, own, other = drawn(8)
    given = jnp.asarray(x), mask, jnp.asarray(theta), bi_affine(None, other, own)
    layer = lambda x, theta, parameters: graph_attention(x, mask, theta, parameters)  # noqa: E731
    assert {*precisions(layer, given[0], given[2], given[3])} == {HIGHEST}


@pytest.mark.usefixtures("unchecked")
def test_parameters_that_do_not_fit_are_refused():
    x, mask, theta, own, other = drawn(9)
    given = jnp.asarray(x), jnp.asarray(mask), jnp.asarray(theta)
    with pytest.raises(ValueError, match="no Λ"):
        graph_attention(*given, bi_affine(np.ones((HEADS, Q, Q)), other, own))
    with pytest.raises(ValueError, match="takes μ"):
        graph_attention(*given, bi_affine(offset=[1.0]))
    with pytest.raises(ValueError, match="channels of x Θ, not of x"):
        graph_attention(*given, bi_affine(key_weight=np.ones((HEADS, P))))
    with pytest.raises(ValueError, match="combination='max'"):
        graph_attention(*given, bi_affine(None, other), combination="max")


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
def test_a_mask_for_each_member_of_the_batch_is_not_taken_for_one_for_each_head():
    """As many heads as members of the batch: the axes must not be confused."""
    x, mask, theta, own, other = drawn(10)
    graphs = np.stack([mask, mask.T])
    theta, parameters = jnp.asarray(theta[:BATCH]), bi_affine(None, other[:BATCH], own[:BATCH])
    out = graph_attention(jnp.asarray(x), graphs, theta, parameters)
    single = [
        graph_attention(jnp.asarray(x[b : b + 1]), graphs[b], theta, parameters)[0]
        for b in range(BATCH)
    ]
    assert_equal(out, jnp.stack(single))
    with pytest.raises(AssertionError, match="entries differ"):
        assert_equal(graph_attention(jnp.asarray(x), graphs[::-1], theta, parameters), out)
    for wrong in (graphs[:1], graphs[:, None], mask[:, :3], mask[0]):
        with pytest.raises(ValueError, match=r"mask.shape=.*one graph for the whole batch"):
            graph_attention(jnp.asarray(x), wrong, theta, parameters)
    with pytest.raises(ValueError, match="pass the boolean mask, or add H"):
        graph_attention(jnp.asarray(x), np.where(mask, 0.0, -np.inf), theta, parameters)


@pytest.mark.usefixtures("unchecked")
def test_what_would_broadcast_or_be_narrowed_is_refused():
    x, mask, theta, own, other = drawn(11)
    raw = BiAffine(None, jnp.asarray(other), jnp.asarray(own), jnp.zeros(1))
    with pytest.raises(ValueError, match=r"offset.shape=\(1,\), but expected \(heads=3\)"):
        graph_attention(x, mask, theta, raw)
    with pytest.raises(ValueError, match="add a batch axis with x"):
        graph_attention(x[0], mask, theta, bi_affine(None, other, own))
    with pytest.raises(ValueError, match="heads, nodes, out_channels"):
        graph_attention_matrices(x, mask, bi_affine(None, other, own))
    with jax.enable_x64(False), pytest.raises(ValueError, match="64-bit types are off"):
        graph_attention(x.astype(float), mask, theta, bi_affine(offset=[1]))


def test_an_empty_batch_is_an_empty_batch():
    _, mask, theta, own, other = drawn(12)
    for combination, channels in (("sum", Q), ("mean", Q), ("concatenate", HEADS * Q)):
        out = jax.eval_shape(
            lambda x, c=combination: graph_attention(
                x, mask, theta, bi_affine(None, other, own), combination=c
            ),
            jax.ShapeDtypeStruct((0, NODES, P), "float32"),
        )
        assert out.shape == (0, NODES, channels)
