"""Planted errors for S.padding, S.boundary, S.pad, S.saturation and S.separable."""

from dataclasses import replace

import jax.numpy as jnp
from proofs.plants.changes import (
    always,
    no_uniform_head,
    replaced_by,
    scaled,
    turned_around,
    turned_kernel,
)


def one_fewer(original):
    return lambda *args, **kwargs: original(*args, **kwargs)[1:]


def without_what_is_missing(original):
    """The uniform head of S.finite as it stands."""

    def changed(maps, inside, uniform_weight):
        *blocks, _ = original(maps, inside, uniform_weight)
        return [*blocks, -uniform_weight / (1 - uniform_weight) * maps.sum(axis=0)]

    return changed


def all_available(original):
    return lambda *args: original(*args) | True


def one_step_aside(original):
    def changed(*args):
        heads, blocks = original(*args)
        return replace(heads, centers=tuple(axis + 1 for axis in heads.centers)), blocks

    return changed


def without_correction(original):
    def changed(maps, uniform_weight):
        *blocks, uniform = original(maps, uniform_weight)
        return [*blocks, 0 * uniform]

    return changed


def hundredth(original):
    return lambda *args: [ball / 100 for ball in original(*args)]


def doubled_rows(original):
    """Of the scores by axes."""

    def changed(*args):
        parts = original(*args)
        rows, columns = parts.scores
        return parts._replace(scores=(2 * rows, columns))

    return changed


def doubled_row_weights(original):
    def changed(*args):
        factors = original(*args)
        return factors._replace(rows=2 * factors.rows)

    return changed


def one_key_later(original):
    """The softmaxes drop a wrong part of the ring."""

    def changed(*args):
        factors = original(*args)
        return factors._replace(columns=jnp.roll(factors.columns, 1, axis=-1))

    return changed


def doubled_cotangent(index):
    """A written derivative of which one factor is wrong."""

    def change(original):
        def changed(*args):
            results = list(original(*args))
            results[index] = 2 * results[index]
            return tuple(results)

        return changed

    return change


def filled_with_zeros(original):
    return lambda images, fill, axes: original(images, "ZEROS", axes)


def exchanged_widths(original):
    return lambda *args: tuple((after, before) for before, after in original(*args))


def outputs_one_token_early(original):
    def changed(*args):
        return tuple(
            axis._replace(queries=range(axis.queries.start - 1, axis.queries.stop - 1))
            for axis in original(*args)
        )

    return changed


def louder_register(factor):
    """Of a limit form."""

    def change(original):
        def changed(encoding):
            register = original(encoding)
            return replace(register, scores=factor * register.scores)

        return changed

    return change


def one_share(original):
    """Both heads of a pair give the register the same share."""

    def changed(*args):
        encoding, blocks, register = original(*args)
        return encoding, blocks, replace(register, scores=0 * register.scores)

    return changed


ZERO_PADDING = "ledger.bounds.zero_padding"
LAYER = "ledger.bounds.zero_padding"
LIMIT_REGISTER = "limit_register"
CONVERTED_REGISTER = "constructions.conversion.limit_register"
REGISTER = "constructions.conversion.register_construction"
REGIMES = "constructions.table"
UNSATURATED = "ledger.evidence.unsaturated_layers"
ENCODINGS = "encodings"
FACTORS = "fast.separable.back_end"
ON_GRID = "fast.separable.axis_product.mix_map_mix"
GRADIENTS = "gradients of the fast back end"
FREE = "fast.separable.axis_mixing.mix_mix_map"
PLANTS = [
    ("padding", "dimensions", f"{ZERO_PADDING}.bare_zero_padding_basis", one_fewer),
    ("padding", "the layer in fractions", "heads_in_fractions", without_what_is_missing),
    ("padding", "other kernels", f"{ZERO_PADDING}.unequal_queries", always(None)),
    ("padding", "other kernels", f"{LAYER}.unequal_queries", always(None)),
    ("padding", "small grids on images", f"{LAYER}.available_offsets", all_available),
    ("padding", "small grids on images", "encodings.bias.BiasEncoding.scale", scaled(1.01)),
    ("padding", "distance with a register", LIMIT_REGISTER, louder_register(0)),
    ("padding", "distance with a register", LIMIT_REGISTER, louder_register(2)),
    ("padding", "a register on images", CONVERTED_REGISTER, louder_register(0)),
    ("registers", "pairs in fractions", "pair_factors", turned_around),
    ("registers", "layers in fractions", REGISTER, one_share),
    ("registers", "T + 1 heads are too few", "express", always(True)),
    ("registers", "on images of many sizes", REGISTER, one_share),
    ("boundary", "the nearest key is unique", "best_scores", turned_around),
    ("boundary", "the mean in fractions", "corrected_maps", without_correction),
    ("boundary", "5 × 5 on 6 × 7 pixels", f"{REGIMES}.quadratic_construction", one_step_aside),
    ("boundary", "5 × 5 on 6 × 7 pixels", f"{REGIMES}.finite_construction", no_uniform_head),
    ("boundary", "limits on images", f"{REGIMES}.quadratic_construction", one_step_aside),
    (
        "boundary",
        "mean patches at finite parameters",
        f"{REGIMES}.finite_construction",
        no_uniform_head,
    ),
    ("pad", "fills on images", "fast.application.fill_ring", filled_with_zeros),
    ("pad", "fills on images", f"{REGIMES}.finite_construction", no_uniform_head),
    ("pad", "filled with the mean", "fast.application.fill_ring", filled_with_zeros),
    ("pad", "XLA's own paddings", "operators.padding.Padding.at", exchanged_widths),
    ("pad", "causal sequences", "encodings.layer.filled_axes", outputs_one_token_early),
    (
        "saturation",
        "quadratic rows",
        "ledger.bounds.saturation.quadratic_total_variation_bound",
        scaled(0.999),
    ),
    ("saturation", "quadratic rows", "clipped_key", always(0)),
    ("saturation", "layers", "ledger.bounds.saturation_error.head_saturation", hundredth),
    ("saturation", "layers", "exact_error", hundredth),
    (
        "saturation",
        "quadratic on images",
        "ledger.evidence.layer_runs.conv_to_attention",
        turned_kernel,
    ),
    ("saturation", "bias on images", f"{UNSATURATED}.saturation_error_bound", scaled(1e-3)),
    (
        "saturation",
        "quadratic on the bare grid",
        f"{UNSATURATED}.PADDINGS",
        replaced_by({"quadratic": "mean"}),
    ),
    ("saturation", "bias on the bare grid", f"{UNSATURATED}.saturation_error_bound", scaled(1e-3)),
    *(
        ("separable", "factors in fractions", f"{ENCODINGS}.{name}.axis_scores", doubled_rows)
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
