"""Planted errors for the claims of Andreoli, sections 1.1 to 1.4."""

from dataclasses import replace

import jax.numpy as jnp
from proofs.plants.changes import always, first, given, one_more, scaled, then, transposed

from convattn_ledger.structures import ShiftBasis

one_term_short = then(lambda factors: tuple(factor[:-1] for factor in factors))
first_term_only = given(lambda a, b: (a[:1], b[:1]))
reversed_parameters = given(lambda x, basis, theta: (x, basis, theta[::-1]))
mixed_entries = first(lambda x: x + x[:, ::-1])
other_numbering = then(lambda composed: replace(composed, theta=composed.theta[::-1]))
backwards = given(lambda grid, shifts: (grid, [-d for d in shifts]))
inputs_in_half_precision = first(lambda x: x.astype(jnp.bfloat16).astype(x.dtype))


def never_truncated(original):
    def changed(first, second):
        (d,), (e,) = first.shifts[0], second.shifts[0]
        return ShiftBasis(first.grid, ((d + e,),))

    return changed


def operator_doubled(original):
    def changed(*args, order):
        return original(*args, order=order) * (2 if order == "operator" else 1)

    return changed


def one_too_many(field):
    """Of the work in each order: a product or an entry more."""
    return then(
        lambda works: {
            order: work._replace(**{field: getattr(work, field) + 1})
            for order, work in works.items()
        }
    )


S = "ledger.structures"
CONVOLUTION, UNIT = f"{S}.structured_convolution", [1, 0, 0, 0, 0, 0]
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
    ("prop1", "families that are no basis", f"{S}.inversion.linear_relation", always(UNIT)),
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
    ("orders", "three orders in four dtypes", CONVOLUTION, inputs_in_half_precision),
    ("orders", "products as XLA counts them", f"{S}.contraction_work", one_too_many("products")),
    ("orders", "products as XLA counts them", f"{S}.contraction_work", one_too_many("entries")),
    ("orders", "clear choices", f"{S}.cheapest_order", always("basis_first")),
]
