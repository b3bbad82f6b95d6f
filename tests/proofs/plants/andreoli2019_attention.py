"""Planted errors for the claims of Andreoli on adaptive bases, section 3."""

import jax
import jax.numpy as jnp
import numpy as np
from proofs.plants.changes import given, one_more, scaled, then, transposed, with_options

LIBRARY = "ledger.structures"
CONVOLUTION = f"{LIBRARY}.self_attention_convolution"
THREE_ROUTES = "pixels of images, three routes"
A_LITTLE_MORE = scaled(1.001)
always_zero = with_options(blank="zero")
squared = then(lambda entries: entries**2)
negated = scaled(-1)
channels_backwards = given(lambda parameters, theta: (parameters, theta[:, ::-1]))
shifts_negated = given(lambda mechanism, grid, shifts: (mechanism, grid, [-d for d in shifts]))
no_offset = then(lambda maps: type(maps)(maps.bilinear, maps.key_weight, maps.query_weight, None))
value_backwards = then(lambda maps: (maps[0][::-1], 2 * maps[1]))


def mask_ignored(original):
    return lambda scores, mask=None, *base: original(scores)


def not_normalised(original):
    return lambda scores, *args: scores


def never_refused(original):
    return lambda scores, mask, **kwargs: jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=0)


def masked_by_a_large_number(original):
    return lambda scores, mask: jnp.where(mask, scores, -1e9)


def plain_relu(original):
    return lambda scores, slope: jax.nn.relu(scores)


def any_slope(original):
    return lambda scores, slope: jnp.where(scores >= 0, scores, slope * scores)


def keys_alone(original):
    return lambda left, right: original(left, right)[: left.size]


def unshifted(original):
    return lambda nodes, shift: np.eye(nodes, dtype=int)


@then
def a_zero_column(weights):
    weights[:, 0] = 0
    return weights


PLANTS = [
    ("attention", "masked columns in fractions", "exact_column_softmax", mask_ignored),
    ("attention", "a blank column", f"{LIBRARY}.column_softmax", always_zero),
    ("attention", "a blank column", f"{LIBRARY}.column_softmax", never_refused),
    ("attention", "masks come last", f"{LIBRARY}.masked_scores", masked_by_a_large_number),
    ("attention", "eq. 7 exactly", f"{LIBRARY}.attention_convolution", one_more),
    ("attention", "eq. 7 exactly", f"{LIBRARY}.cross_attention_convolution", one_more),
    ("attention", "eq. 7 exactly", CONVOLUTION, scaled(2)),
    ("attention", "eq. 7 exactly", f"{LIBRARY}.structured_convolution", one_more),
    ("attention", "what is linear", f"{LIBRARY}.attention_convolution", one_more),
    ("attention", "what is linear", CONVOLUTION, scaled(0)),
    ("attention", "pixels of images, masked", f"{LIBRARY}.attention_convolution", A_LITTLE_MORE),
    ("biaffine", "eq. 8 exactly", f"{LIBRARY}.bi_affine_scores", one_more),
    ("biaffine", "rank and identification", "by_entries", squared),
    ("biaffine", "rank and identification", "by_entries", one_more),
    ("biaffine", "redundant terms", "exact_column_softmax", not_normalised),
    ("biaffine", "scores of pixels", f"{LIBRARY}.bi_affine_scores", A_LITTLE_MORE),
    ("gat", "the query term", "sloped", lambda original: lambda scores: scores),
    ("gat", "the query term", "exact_column_softmax", not_normalised),
    ("gat", "the order of the keys", "sloped", negated),
    ("gat", "masks and slopes", f"{LIBRARY}.leaky_relu", plain_relu),
    ("gat", "masks and slopes", f"{LIBRARY}.leaky_relu", any_slope),
    ("gat", "tied parameters", f"{LIBRARY}.through_parameter", channels_backwards),
    ("gat", "neighbouring pixels of images", f"{LIBRARY}.graph_attention", A_LITTLE_MORE),
    ("transformer", "eqs. 9 and 10 exactly", "mixed_product", scaled(2)),
    ("transformer", "what the factors reach", "tangents", keys_alone),
    ("transformer", "counts", "stored", scaled(2)),
    ("transformer", "layer and convolution", f"{LIBRARY}.parameter_from_maps", scaled(2)),
    ("transformer", "layer and convolution", "maps_from_parameter", value_backwards),
    ("transformer", "no influence on predecessors", f"{LIBRARY}.causal_mask", transposed),
    ("transformer", "biases", f"{LIBRARY}.as_bi_affine", no_offset),
    ("transformer", "biases", "exact_column_softmax", not_normalised),
    ("transformer", THREE_ROUTES, CONVOLUTION, A_LITTLE_MORE),
    ("transformer", THREE_ROUTES, "operators.attention.multi_head_self_attention", A_LITTLE_MORE),
    ("shiftheads", "the sum", f"{LIBRARY}.attention_with_shifts", scaled(2)),
    ("shiftheads", "the sum", f"{LIBRARY}.with_shift_heads", shifts_negated),
    ("shiftheads", "order is seen", "shift_matrix", unshifted),
    ("shiftheads", "no softmax is a shift", "shift_matrix", transposed),
    ("shiftheads", "no softmax is a shift", "exact_column_softmax", a_zero_column),
    ("shiftheads", "masks and shifts", f"{LIBRARY}.with_shift_heads", shifts_negated),
    ("shiftheads", "pixels of images", f"{LIBRARY}.attention_with_shifts", A_LITTLE_MORE),
]
