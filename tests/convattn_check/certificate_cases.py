"""One certificate or more for every claim and kind; all of them are to be accepted."""

import certificate_builder as build
import kernel_cases as kernels
from identity_cases import IDENTITIES

from convattn_check import check

CASES = {
    "lemma1": build.limit_equality("C20.lemma1", "given", kernel=(3, 3)),
    "theorem1": build.limit_equality("C20.theorem1", "quadratic", kernel=(3, 5)),
    "theorem1_patches": build.limit_equality(
        "C20.theorem1", "quadratic", kernel=(3, 3), patch=(2, 2)
    ),
    "padding": build.limit_equality("C20.padding", "quadratic", kernel=(3, 3), extra_ring=2),
    "stride": build.limit_equality("C20.stride", "quadratic", kernel=(3, 3), stride=(2, 3)),
    "dilation": build.limit_equality("C20.dilation", "quadratic", kernel=(3, 3), dilation=(2, 1)),
    "sequence": build.limit_equality("C20.sequence", "quadratic", kernel=(5,)),
    "patches": build.limit_equality("L21.theorem1", "bias", kernel=(3, 5), patch=(2, 1)),
    "even": build.limit_equality("S.dp2", "enumerated", kernel=(2, 4), patch=(2, 3)),
    "wo": build.limit_equality("L21.wo", "bias", kernel=(5, 3), patch=(2, 3)),
    "cor3": build.limit_equality("L21.cor3", "bias", kernel=(3, 3)),
    "cor4": build.limit_equality("L21.cor4", "bias", kernel=(5, 3), patch=(2, 2)),
    "stride_tokens": build.limit_equality(
        "L21.variants", "bias", kernel=(3, 3), patch=(4, 2), stride=(2, 2), route="tokens"
    ),
    "stride_pixels": build.limit_equality(
        "L21.variants", "bias", kernel=(3, 3), patch=(2, 2), stride=(3, 1), dilation=(1, 2)
    ),
    "absolute": build.limit_equality("L21.absolute", "absolute", kernel=(3, 3), patch=(2, 1)),
    "point": build.limit_equality("L21.theorem6", "bias", kernel=(1, 1), patch=(2, 2)),
    "network": build.leaky_equality("S.network", kernel=(3, 3), stride=(2, 2)),
    "pad": build.leaky_equality("S.pad", kernel=(3, 2), patch=(2, 1)),
    "finite": build.leaky_equality(kernel=(3, 3), leak="1/3"),
    "sharpness": build.leaky_equality("S.sharpness", kernel=(1, 1), patch=(2, 1), leak="1/5"),
    "finite_patches": build.leaky_equality(kernel=(3, 5), patch=(2, 3), leak="5/7"),
    "finite_sequence": build.leaky_equality(kernel=(3,), patch=(2,), dilation=(3,)),
    "powers": build.power_equality(kernel=(3,)),
    "powers_rational": build.power_equality(
        kernel=(3,), patch=(2,), bases=["1/2", "3", "5/3"], exponents=[2, 0, 5, 1]
    ),
    "powers_lagrange": build.power_equality(kernel=(2, 3), lagrange=True),
    "enumerated": build.limit_equality("S.dp2", "enumerated", kernel=(3, 3), patch=(1, 2)),
    "polygon": build.limit_equality("S.polygon", "polygon", kernel=(3, 2), patch=(1, 2)),
    "pixel_bound": kernels.pixel_bound(),
    "patch_bound": kernels.patch_bound(),
    "depth_bound": kernels.pixel_bound("S.depth"),
    "tile_bound": kernels.tile_bound(),
    "two_layers": build.two_layers(),
    "two_layers_limit": build.two_layers((2, 3), (1, 2), (2, 3), "0"),
    "two_layers_point": build.two_layers((1, 4), (1, 1), (1, 3), "2/3"),
    "exponentials": build.exponentials(),
    "exponentials_point": build.exponentials(1, 2, 3),
    "content_bound": kernels.pixel_bound("S.content"),
    "two_masks": kernels.two_masks(),
    "mixed_sign": kernels.mixed_sign(),
    "box_of_patches": kernels.box_of_patches(),
    "two_of_three": kernels.two_of_three(),
    "box_in_part": kernels.box_in_part(),
    "stacked_heads": build.relative_heads("S.lemma3"),
    "pixel_heads": build.pixel_heads(),
    "relative_heads": build.relative_heads(),
    "hard_heads": build.hard_heads(),
    "rank": build.rank(),
    "survives": build.saturation(),
    "vanishes": build.saturation(88, -126, "vanishes"),
    "border": kernels.border_of_ones(),
    "border_theorem1": kernels.border_of_ones("C20.theorem1"),
    "border_patches": kernels.border_of_ones("L21.theorem1", (2, 3)),
    "border_padding": kernels.border_of_ones("S.padding", (1, 2)),
    "quadratic_variation": build.quadratic_variation(),
    "quadratic_variation_wide": build.quadratic_variation("3/7", 1, squares=8),
    "bias_variation": build.bias_variation(),
    "commutant_line": build.commutant((4,)),
    "commutant_grid": build.commutant((2, 3)),
    "commutant_torus": build.commutant((3, 2), "torus"),
    **IDENTITIES,
    "turned_tap": kernels.turned_tap(),
    "turned_tap_mirrored": kernels.turned_tap(mirrored=True),
    "places": kernels.shared_places(),
    "places_limit": kernels.shared_places("limit"),
    "places_by_output": kernels.shared_places(channels=(2, 1)),
    "line_bound": kernels.line_bound(),
    "narrow_heads": kernels.triangular(),
    "narrow_heads_finite": kernels.triangular("finite"),
    "narrow_heads_many": kernels.triangular("finite", dimension=1, patch=3),
    "narrow_heads_unlike": kernels.unlike_channels(),
}
EQUALITIES = {name: case for name, case in CASES.items() if case["kind"] == "equality"}


def changed(certificate, change):
    """A copy in which `change` has altered the body, with the digests made anew."""
    copy = build.sealed(certificate)
    change(copy["body"])
    return build.sealed(copy)


def verdict_on(certificate, **options):
    return check(build.written(certificate), **options)


def verdict_after(name, change):
    """The verdict on a case whose body was altered and whose digests were made anew."""
    return verdict_on(changed(CASES[name], change))


def put(path, value):
    """A change: body[path[0]][path[1]]... = value."""

    def change(body):
        *parents, last = path
        for step in parents:
            body = body[step]
        body[last] = value

    return change


def drop(path):
    """A change: del body[path[0]][path[1]]...."""

    def change(body):
        *parents, last = path
        for step in parents:
            body = body[step]
        del body[last]

    return change


def swap(path, one, two):
    """A change: two items below a path change places."""

    def change(body):
        for step in path:
            body = body[step]
        body[one], body[two] = body[two], body[one]

    return change


def update(**fields):
    """A change: body |= fields."""
    return lambda body: body.update(fields)


def all_at_once(*changes):
    """A change that makes several."""

    def change(body):
        for each in changes:
            each(body)

    return change
