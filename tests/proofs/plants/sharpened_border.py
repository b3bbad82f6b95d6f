"""Planted errors for S.padding, S.boundary, S.pad, S.saturation and S.separable."""

from dataclasses import replace

import jax.numpy as jnp
from proofs.plants.changes import (
    always,
    given,
    last_map_lost,
    no_uniform_head,
    one_fewer,
    replaced_by,
    scaled,
    then,
    turned_around,
    turned_kernel,
)

all_available = then(lambda available: available | True)
hundredth = then(lambda balls: [ball / 100 for ball in balls])
# Of the scores by axes, and of the softmaxes by axes.
doubled_rows = then(lambda parts: parts._replace(scores=(2 * parts.scores[0], parts.scores[1])))
doubled_row_weights = then(lambda factors: factors._replace(rows=2 * factors.rows))
filled_with_zeros = given(lambda images, fill, axes: (images, "ZEROS", axes))
exchanged_widths = then(lambda widths: tuple((after, before) for before, after in widths))


def without_what_is_missing(original):
    """The uniform head of S.finite as it stands."""

    def changed(maps, inside, uniform_weight):
        *blocks, _ = original(maps, inside, uniform_weight)
        return [*blocks, -uniform_weight / (1 - uniform_weight) * maps.sum(axis=0)]

    return changed


@then
def one_step_aside(result):
    heads, blocks = result
    return replace(heads, centers=tuple(axis + 1 for axis in heads.centers)), blocks


@then
def one_key_later(factors):
    """The softmaxes drop a wrong part of the ring."""
    return factors._replace(columns=jnp.roll(factors.columns, 1, axis=-1))


def doubled_cotangent(index):
    """A written derivative of which one factor is wrong."""
    return then(lambda factors: tuple(2 * x if at == index else x for at, x in enumerate(factors)))


@then
def outputs_one_token_early(axes):
    return tuple(
        axis._replace(queries=range(axis.queries.start - 1, axis.queries.stop - 1)) for axis in axes
    )


def louder_register(factor):
    """Of a limit form."""
    return then(lambda register: replace(register, scores=factor * register.scores))


@then
def one_share(result):
    """Both heads of a pair give the register the same share."""
    encoding, blocks, register = result
    return encoding, blocks, replace(register, scores=0 * register.scores)


ZERO_PADDING = "ledger.bounds.zero_padding"
LIMIT_REGISTER = "limit_register"
CONVERTED_REGISTER = "constructions.conversion.limit_register"
REGISTER = "constructions.conversion.register_construction"
REGIMES = "constructions.table"
FINITE = f"{REGIMES}.finite_construction"
UNSATURATED = "ledger.evidence.unsaturated_layers"
QUADRATIC_BOUND = "ledger.bounds.saturation.quadratic_total_variation_bound"
CONVERT, MEAN = "ledger.evidence.layer_runs.conv_to_attention", replaced_by({"quadratic": "mean"})
FACTORS = "fast.separable.back_end"
ON_GRID = "fast.separable.axis_product.mix_map_mix"
GRADIENTS = "gradients of the fast back end"
FREE = "fast.separable.axis_mixing.mix_mix_map"
PLANTS = [
    ("padding", "dimensions", f"{ZERO_PADDING}.bare_zero_padding_basis", one_fewer),
    ("padding", "the layer in fractions", "heads_in_fractions", without_what_is_missing),
    ("padding", "other kernels", f"{ZERO_PADDING}.unequal_queries", always(None)),
    ("padding", "other kernels", f"{ZERO_PADDING}.unequal_queries", always(None)),
    ("padding", "small grids on images", f"{ZERO_PADDING}.available_offsets", all_available),
    ("padding", "small grids on images", "encodings.bias.BiasEncoding.scale", scaled(1.01)),
    ("padding", "distance with a register", LIMIT_REGISTER, louder_register(0)),
    ("padding", "distance with a register", LIMIT_REGISTER, louder_register(2)),
    ("padding", "a register on images", CONVERTED_REGISTER, louder_register(0)),
    ("registers", "pairs in fractions", "pair_factors", turned_around),
    ("registers", "layers in fractions", REGISTER, one_share),
    ("registers", "T + 1 heads are too few", "express", always(True)),
    ("registers", "on images of many sizes", REGISTER, one_share),
    ("boundary", "the nearest key is unique", "best_scores", turned_around),
    ("boundary", "the mean in fractions", "corrected_maps", last_map_lost),
    ("boundary", "5 × 5 on 6 × 7 pixels", f"{REGIMES}.quadratic_construction", one_step_aside),
    ("boundary", "5 × 5 on 6 × 7 pixels", FINITE, no_uniform_head),
    ("boundary", "limits on images", f"{REGIMES}.quadratic_construction", one_step_aside),
    ("boundary", "mean patches at finite parameters", FINITE, no_uniform_head),
    ("pad", "fills on images", "fast.application.fill_ring", filled_with_zeros),
    ("pad", "fills on images", FINITE, no_uniform_head),
    ("pad", "filled with the mean", "fast.application.fill_ring", filled_with_zeros),
    ("pad", "XLA's own paddings", "operators.padding.Padding.at", exchanged_widths),
    ("pad", "causal sequences", "encodings.layer.filled_axes", outputs_one_token_early),
    ("saturation", "quadratic rows", QUADRATIC_BOUND, scaled(0.999)),
    ("saturation", "quadratic rows", "clipped_key", always(0)),
    ("saturation", "layers", "ledger.bounds.saturation_error.head_saturation", hundredth),
    ("saturation", "layers", "exact_error", hundredth),
    ("saturation", "quadratic on images", CONVERT, turned_kernel),
    ("saturation", "bias on images", f"{UNSATURATED}.saturation_error_bound", scaled(1e-3)),
    ("saturation", "quadratic on the bare grid", f"{UNSATURATED}.PADDINGS", MEAN),
    ("saturation", "bias on the bare grid", f"{UNSATURATED}.saturation_error_bound", scaled(1e-3)),
    *(
        ("separable", "factors in fractions", f"encodings.{name}.axis_scores", doubled_rows)
        for name in (
            "quadratic.QuadraticEncoding",
            "learned.LearnedEncoding",
            "quadratic_grid.QuadraticGridEncoding",
            "axial.AxialEncoding",
        )
    ),
    ("separable", "exclusions", "is_kronecker", always(True)),
    ("separable", "exclusions", "rows_factor", always(True)),
    ("separable", "only sums factor", "mixed_difference", scaled(0)),
    ("separable", "axes on images", f"{FACTORS}.axis_factors", doubled_row_weights),
    ("separable", "convolution by axes", f"{FACTORS}.axis_factors", one_key_later),
    ("separable", GRADIENTS, f"{ON_GRID}.bwd", doubled_cotangent(2)),
    ("separable", GRADIENTS, f"{ON_GRID}.bwd", doubled_cotangent(3)),
    ("separable", GRADIENTS, f"{FREE}.bwd", doubled_cotangent(0)),
]
