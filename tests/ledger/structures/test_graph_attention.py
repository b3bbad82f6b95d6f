"""Graph attention against loops after its authors' equations, and A19's way of writing it."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within
from matrix_products import HIGHEST, precisions
from strategies import small_integers

from convattn_ledger.evidence.influence_rounding import attention_within, column_weights_within
from convattn_ledger.structures import (
    bi_affine,
    bi_affine_scores,
    graph_attention,
    through_parameter,
)

BATCH, HEADS, NODES, P, Q = 2, 3, 5, 4, 2


def draw(seed: int):
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
@pytest.mark.quick(1)
def test_it_is_the_layer_of_its_authors(slope):
    x, mask, theta, own, other = draw(0)
    heads = layer_by_loops(x, mask, theta, own, other, slope)
    bound = 2 * within(x, mask, theta, own, other, slope)  # theirs and ours
    args = jnp.asarray(x), jnp.asarray(mask), jnp.asarray(theta)
    layer = lambda x, theta: graph_attention(x, mask, theta, parameters)  # noqa: E731
    parameters = bi_affine(key_weight=other, query_weight=own)
    expected, limit = heads.sum(1), bound.sum(1)
    assert_within(graph_attention(*args, parameters, slope=slope), expected, limit)
    assert {*precisions(layer, args[0], args[2])} == {HIGHEST}
    swapped = bi_affine(key_weight=own, query_weight=other)
    with pytest.raises(AssertionError, match="too far"):
        assert_within(graph_attention(*args, swapped, slope=slope), expected, limit)
    backwards = graph_attention(args[0], args[1].T, args[2], parameters, slope=slope)
    with pytest.raises(AssertionError, match="too far"):
        assert_within(backwards, expected, limit)


def test_a_node_without_neighbours_is_refused_or_gets_nothing():
    x, mask, theta, own, other = draw(7)
    mask[:, 3] = False
    args = jnp.asarray(x), jnp.asarray(mask), jnp.asarray(theta), bi_affine(None, other, own)
    with pytest.raises(ValueError, match="column 3 is masked everywhere"):
        graph_attention(*args)
    out = np.asarray(graph_attention(*args, blank="zero"))
    assert not out[:, 3].any()
    assert out[:, 0].any()


def test_scores_on_x_theta_are_scores_on_x_with_tied_parameters():
    """Λ too, though the networks have none."""
    x, _, theta, own, other = draw(3)
    rng = np.random.default_rng(4)
    parameters = bi_affine(small_integers(rng, HEADS, Q, Q), other, own, small_integers(rng, HEADS))
    tied = through_parameter(parameters, jnp.asarray(theta))
    expected = np.empty((BATCH, HEADS, NODES, NODES))
    for k in range(HEADS):
        z = jnp.asarray(x @ theta[k])
        one = jax.tree.map(lambda part, k=k: part[k : k + 1], parameters)
        expected[:, k] = bi_affine_scores(z, z, one)[:, 0]
    assert_equal(bi_affine_scores(jnp.asarray(x), jnp.asarray(x), tied), expected)
