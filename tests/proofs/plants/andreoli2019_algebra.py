"""Planted errors for the claims of Andreoli, sections 1.1 to 1.4."""

from dataclasses import replace

import jax.numpy as jnp
from proofs.plants.changes import always, one_more, scaled

from convattn_ledger.structures import ShiftBasis


def one_term_short(original):
    return lambda *args: tuple(factor[:-1] for factor in original(*args))


def first_term_only(original):
    return lambda a, b: original(a[:1], b[:1])


def transposed(original):
    return lambda matrix: original(matrix).T


def reversed_parameters(original):
    return lambda x, basis, theta, **kwargs: original(x, basis, theta[::-1], **kwargs)


def mixed_entries(original):
    return lambda x, basis, theta: original(x + x[:, ::-1], basis, theta)


def other_numbering(original):
    def changed(*args):
        composed = original(*args)
        return replace(composed, theta=composed.theta[::-1])

    return changed


def never_truncated(original):
    def changed(first, second):
        (d,), (e,) = first.shifts[0], second.shifts[0]
        return ShiftBasis(first.grid, ((d + e,),))

    return changed


def backwards(original):
    return lambda grid, shifts: original(grid, [-d for d in shifts])


def operator_doubled(original):
    def changed(*args, order):
        return original(*args, order=order) * (2 if order == "operator" else 1)

    return changed


def inputs_in_half_precision(original):
    def changed(x, basis, theta, *, order):
        return original(x.astype(jnp.bfloat16).astype(x.dtype), basis, theta, order=order)

    return changed


def a_product_more(original):
    def changed(*args):
        return {order: w._replace(products=w.products + 1) for order, w in original(*args).items()}

    return changed


def an_entry_more(original):
    def changed(*args):
        return {order: w._replace(entries=w.entries + 1) for order, w in original(*args).items()}

    return changed


S = "ledger.structures"
RANK = "bounds.flattened_kernel.exact_rank"
PLANTS = [
    ("mixed", "the terms of the proof", "rank_one_terms", one_term_short),
    ("mixed", "the terms of the proof", "sum_of_terms", scaled(2)),
    ("mixed", "the terms of the proof", f"{S}.mixed_product.mixed_product", first_term_only),
    ("mixed", "ranks", RANK, one_more),
    ("mixed", "ranks", f"{S}.mixed_product.mixed_product", first_term_only),
    ("prop1", "the inverse, exactly", f"{S}.inversion.transposed_inverse", transposed),
    ("prop1", "the inverse, exactly", f"{S}.inversion.invert_mixed_product", scaled(2)),
    ("prop1", "families that are no basis", f"{S}.inversion.dual_basis", always(0)),
    (
        "prop1",
        "families that are no basis",
        f"{S}.inversion.linear_relation",
        always([1, 0, 0, 0, 0, 0]),
    ),
    ("prop1", "in floating point", "jax.numpy.linalg.inv", scaled(1 + 1e-4)),
    ("prop2", "the rule", f"{S}.structured_convolution", reversed_parameters),
    ("prop2", "the rule", f"{S}.structured_convolution", one_more),
    ("prop2", "every linear map", f"{S}.inversion.invert_mixed_product", scaled(2)),
    ("prop2", "1 × 1", f"{S}.structured_convolution", mixed_entries),
    ("prop3", "one after the other", f"{S}.compose", other_numbering),
    ("prop3", "composites of shifts", f"{S}.compose_bases", never_truncated),
    ("prop3", "composites of shifts", "stays_a_shift", always(True)),
    ("prop3", "two zero-padded convolutions", f"{S}.compose", other_numbering),
    ("reductions", "the three forms", f"{S}.grouped_convolution", scaled(2)),
    ("reductions", "the three forms", f"{S}.separable_theta", one_more),
    ("reductions", "the three forms", f"{S}.controlled_convolution", one_more),
    ("reductions", "as XLA has them", f"{S}.shift_basis", backwards),
    ("reductions", "counts and savings", "saves", always(True)),
    ("reductions", "counts and savings", "parameter_count", one_more),
    ("reductions", "free numbers", RANK, one_more),
    ("orders", "three orders, exactly", f"{S}.structured_convolution", operator_doubled),
    (
        "orders",
        "three orders in four dtypes",
        f"{S}.structured_convolution",
        inputs_in_half_precision,
    ),
    ("orders", "products as XLA counts them", f"{S}.contraction_work", a_product_more),
    ("orders", "products as XLA counts them", f"{S}.contraction_work", an_entry_more),
    ("orders", "clear choices", f"{S}.cheapest_order", always("basis_first")),
]
