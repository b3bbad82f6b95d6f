"""Each demand of the table has a certificate that is sound, but for this demand of its claim."""

import certificate_builder as build
import pytest
from certificate_cases import CASES, changed, verdict_on

from convattn_check import claims
from convattn_check.claims import TABLE, Facts

# Claim: score and sizes that meet every demand.
PLAIN = {"kernel": (3, 3)}
EQUALITIES = {
    "C20.lemma1": ("given", PLAIN),
    "C20.theorem1": ("quadratic", PLAIN),
    "C20.padding": ("quadratic", PLAIN),
    "C20.stride": ("quadratic", PLAIN | {"stride": (2, 1)}),
    "C20.dilation": ("quadratic", PLAIN | {"dilation": (1, 2)}),
    "C20.sequence": ("quadratic", {"kernel": (3,)}),
    "L21.theorem1": ("bias", PLAIN | {"patch": (2, 2)}),
    "L21.wo": ("bias", PLAIN | {"patch": (2, 2)}),
    "L21.cor3": ("bias", PLAIN),
    "L21.cor4": ("bias", PLAIN | {"patch": (2, 2)}),
    "L21.variants": ("bias", PLAIN | {"patch": (2, 2), "stride": (2, 2), "route": "tokens"}),
    "L21.absolute": ("absolute", PLAIN),
    "L21.theorem6": ("bias", {"kernel": (1, 1), "patch": (2, 2)}),
    "S.dp2": ("enumerated", PLAIN),
    "S.polygon": ("polygon", PLAIN),
}
# Demand: the sizes that break it.
BROKEN_SIZES = {
    claims.PIXELS: {"patch": (1, 2)},
    claims.ODD: {"kernel": (3, 4)},
    claims.IMAGE: {"kernel": (3,), "patch": (2,)},
    claims.PLAIN: {"dilation": (2, 1)},
    claims.STRIDED: {"stride": (1, 1)},
    claims.WIDE: {"kernel": (1, 1)},
    claims.DILATED: {"kernel": (3, 1)},  # the dilation is on the axis with K = 1
    claims.VARIANT: {"kernel": (3, 1), "stride": (1, 1), "dilation": (1, 2)},
    claims.POINT: {"kernel": (3, 1)},
    claims.SMALL: {"kernel": (7, 3)},
    claims.SEQUENCE: {"kernel": (3, 3)},
    claims.PATCHES: {"patch": (1, 2)},
    claims.FOUR: {"kernel": (3, 1)},
}
BROKEN_SEQUENCES = {
    claims.PIXELS: {"patch": (2,)},
    claims.ODD: {"kernel": (4,)},
    claims.WIDE: {"kernel": (1,)},
    claims.PLAIN: {"dilation": (2,)},
}
LIMITED = (
    claims.GIVEN, claims.BIAS, claims.QUADRATIC, claims.ABSOLUTE, claims.ENUMERATED, claims.POLYGON
)  # fmt: skip


def one_head_more(body):
    body["attention"]["targets"].append(body["attention"]["targets"][0])
    body["heads"] += 1
    for name in {"forms"} & body["attention"].keys():
        body["attention"][name].append(body["attention"][name][0])


def one_target_more(body):
    body["second"]["targets"].append(None)


def broken_equality(claim, demand):
    if claim in ("S.finite", "S.pad"):
        return {
            claims.FINITE: build.limit_equality(claim, "bias", **PLAIN),
            claims.LEAKY: build.power_equality(claim, kernel=(3,)),
            claims.WIDE: build.leaky_equality(claim, kernel=(1,)),
            claims.ONE_MORE: changed(build.leaky_equality(claim, **PLAIN), one_head_more),
        }[demand]
    if claim == "S.sharpness":
        point = {"kernel": (1, 1)}
        return {
            claims.FINITE: build.limit_equality(claim, "bias", **point),
            claims.LEAKY: build.power_equality(claim, kernel=(1,), patch=(1,)),
            claims.POINT: build.leaky_equality(claim, kernel=(1, 2)),
            claims.ONE_MORE: changed(build.leaky_equality(claim, **point), one_head_more),
        }[demand]
    if claim == "S.network":
        sizes = {"kernel": (3, 3), "patch": (1, 1)}
        return {
            claims.FINITE: build.limit_equality(claim, "bias", **sizes),
            claims.LEAKY: build.power_equality(claim, kernel=(3, 3)),
            claims.IMAGE: build.leaky_equality(claim, kernel=(3,), patch=(1,)),
            claims.ODD: build.leaky_equality(claim, kernel=(2, 3), patch=(1, 1)),
            claims.PIXELS: build.leaky_equality(claim, kernel=(3, 3), patch=(2, 2)),
            claims.ONE_MORE: changed(build.leaky_equality(claim, **sizes), one_head_more),
        }[demand]
    if claim == "S.dp1":

        def one_exponent_more(body):
            body["attention"]["exponents"].append(9)
            body["heads"] += 1

        return {
            claims.FINITE: build.limit_equality(claim, "bias", **PLAIN),
            claims.POWERS: build.leaky_equality(claim, **PLAIN),
            claims.ONE_MORE: changed(build.power_equality(kernel=(3,)), one_exponent_more),
        }[demand]
    score, sizes = EQUALITIES[claim]
    if demand is claims.LIMIT:
        return build.leaky_equality(claim, **sizes)
    if demand in LIMITED:
        other = "given" if score != "given" else "bias"
        return build.limit_equality(claim, other, **sizes)
    if demand is claims.ONE_EACH:
        return changed(build.limit_equality(claim, score, **sizes), one_head_more)
    if claim == "C20.sequence" and demand in BROKEN_SEQUENCES:
        return build.limit_equality(claim, score, **(sizes | BROKEN_SEQUENCES[demand]))
    changes = BROKEN_SIZES[demand]
    if len(changes.get("kernel", sizes["kernel"])) == 1:
        sizes = {"kernel": (1,) if claim == "L21.theorem6" else (3,)}
        changes = {} if claims.PIXELS in TABLE["equality", claim] else {"patch": (2,)}
    return build.limit_equality(claim, score, **(sizes | changes))


def edited(name, **entries):
    return changed(CASES[name], lambda body: body.update(entries))


ONE_AXIS = {
    "kernel_size": [3],
    "kernel": [1] * 3,
    "image_size": [5],
    "patch_size": [1],
    "queries": [[0], [2]],
}
BROKEN_OTHERS = {
    ("L21.theorem5", claims.IMAGE): edited("pixel_bound", kernel_size=[9], patch_size=[1]),
    ("L21.theorem5", claims.PIXELS): edited("pixel_bound", patch_size=[1, 2]),
    ("L21.theorem5", claims.ODD): edited(
        "pixel_bound", kernel_size=[2, 3], kernel=[1] * 54, heads=6
    ),
    ("L21.theorem5", claims.FULL): edited("pixel_bound", heads=8),
    ("L21.theorem5", claims.SEVERAL): edited(
        "pixel_bound", in_channels=1, out_channels=1, kernel=[1] * 9, heads=1
    ),
    ("L21.theorem6", claims.IMAGE): edited("patch_bound", kernel_size=[9], patch_size=[4]),
    ("L21.theorem6", claims.SQUARE): edited("patch_bound", patch_size=[3, 2]),
    ("L21.theorem6", claims.PATCHES): edited("patch_bound", patch_size=[1, 1]),
    ("L21.theorem6", claims.ODD): edited("patch_bound", kernel_size=[4, 4], kernel=[1] * 16),
    ("L21.theorem6", claims.SMALL): edited("patch_bound", kernel_size=[1, 1], kernel=[1]),
    ("L21.theorem6", claims.NINE): edited("patch_bound", heads=8),
    ("S.content", claims.SEVERAL): edited(
        "content_bound", in_channels=1, out_channels=1, kernel=[1] * 9, heads=1
    ),
    ("S.kernel", claims.SEVERAL): edited("mixed_sign", heads=1),
    ("S.approx", claims.SEVERAL): edited("two_of_three", heads=1),
    ("S.lemma3", claims.ODD): edited("stacked_heads", kernel_size=[2]),
    ("S.lemma3", claims.SPANNING): edited("stacked_heads", kernel_size=[3]),
    ("S.heads", claims.SQUARE): edited("line_bound", kernel_size=[9, 1], patch_size=[2, 2]),
    ("S.heads", claims.ODD): edited("line_bound", kernel_size=[8], kernel=[1] * 8),
    ("S.heads", claims.GENERIC): edited("line_bound", heads=4),
    ("S.heads", claims.SEVERAL): edited(
        "line_bound", kernel_size=[1], patch_size=[1], kernel=[1], heads=1
    ),
    ("S.depth", claims.SQUARE): edited("depth_bound", patch_size=[1, 2]),
    ("S.depth", claims.ODD): edited("depth_bound", kernel_size=[2, 2], kernel=[1] * 36),
    ("S.depth", claims.GENERIC): edited("depth_bound", heads=8),
    ("S.depth", claims.SEVERAL): edited(
        "depth_bound", in_channels=1, out_channels=1, kernel=[1] * 9, heads=1
    ),
    ("S.depth", claims.COMPOSED): changed(CASES["two_layers"], one_target_more),
    ("S.depth", claims.ROOM): build.two_layers(image=(1, 4)),
    ("S.tiles", claims.IMAGE): edited(
        "tile_bound", kernel_size=[9], kernel=[1] * 18, patch_size=[2]
    ),
    ("S.tiles", claims.SQUARE): edited("tile_bound", patch_size=[2, 4]),
    ("S.tiles", claims.ODD): edited("tile_bound", kernel_size=[10, 10], kernel=[1] * 200),
    ("S.tiles", claims.TILES): edited("tile_bound", kernel_size=[7, 7], kernel=[1] * 98),
    ("S.tiles", claims.GENERIC): edited("tile_bound", heads=17),
    ("S.barrier", claims.ODD): edited("exponentials", kernel_size=[4]),
    ("S.barrier", claims.BELOW): edited("exponentials", heads=2),
    ("S.headdim", claims.ODD): edited("narrow_heads", kernel_size=[2], kernel=[1] * 8),
    ("S.headdim", claims.WIDE): edited("narrow_heads", kernel_size=[1], kernel=[1] * 4),
    ("S.headdim", claims.NARROW): edited("narrow_heads", head_dimension=4),
    ("S.width", claims.ODD): edited("places", kernel_size=[2]),
    ("S.width", claims.WIDE): edited("places", kernel_size=[1]),
    ("S.width", claims.NARROW): edited("places", head_dimension=3),
    ("S.width", claims.SHARED): edited("places", count=6),
    ("C20.lemma3", claims.ODD): edited("pixel_heads", kernel_size=[2]),
    ("C20.lemma3", claims.SPANNING): edited("pixel_heads", kernel_size=[3]),
    ("C20.alpha46", claims.FLOAT32): build.saturation(45, -126),
    ("C20.padding", claims.IMAGE): edited("border", **ONE_AXIS),
    ("C20.theorem1", claims.IMAGE): edited("border_theorem1", **ONE_AXIS),
    ("L21.theorem1", claims.IMAGE): edited("border_patches", **ONE_AXIS),
    ("C20.padding", claims.WIDE): edited("border", kernel_size=[1, 1], kernel=[1]),
    ("C20.theorem1", claims.WIDE): edited("border_theorem1", kernel_size=[1, 1], kernel=[1]),
    ("L21.theorem1", claims.WIDE): edited("border_patches", kernel_size=[1, 1], kernel=[1]),
    ("C20.padding", claims.ODD): edited("border", kernel_size=[3, 2], kernel=[1] * 6),
    ("C20.padding", claims.PIXELS): edited("border", patch_size=[2, 1]),
    ("C20.theorem1", claims.ODD): edited("border_theorem1", kernel_size=[2, 1], kernel=[1, 1]),
    ("C20.theorem1", claims.PIXELS): edited("border_theorem1", patch_size=[2, 5]),
    ("L21.theorem1", claims.ODD): edited("border_patches", kernel_size=[3, 2], kernel=[1] * 6),
    ("A19.equivariance", claims.SEVERAL_NODES): build.commutant((1,)),
    ("A19.equivariance", claims.UNIT_SHIFTS): build.commutant((3,), "torus", [[1]]),
    ("A19.equivariance", claims.COMMUTANT): build.commutant((3,), "bare", [[1]]),
}
# The same demand of two kinds.
BROKEN_TWICE = {
    ("lower_bound", "S.depth", claims.WIDE): edited(
        "depth_bound", kernel_size=[1, 1], kernel=[1] * 9
    ),
    ("two_layers", "S.depth", claims.WIDE): build.two_layers((1, 1)),
}
ROWS = [(kind, claim, demand) for (kind, claim), row in TABLE.items() for demand in row]


@pytest.mark.parametrize(
    ("kind", "claim", "demand"), ROWS, ids=[f"{k}-{c}-{d.text[:20]}" for k, c, d in ROWS]
)
def test_every_demand_of_every_claim_is_made(kind, claim, demand):
    if kind == "equality":
        certificate = broken_equality(claim, demand)
    else:
        key = (kind, claim, demand) if (kind, claim, demand) in BROKEN_TWICE else (claim, demand)
        certificate = BROKEN_TWICE.get(key) or BROKEN_OTHERS[key]
    certificate = build.sealed(certificate | {"claim": claim})
    assert certificate["kind"] == kind
    verdict = verdict_on(certificate)
    assert not verdict.accepted
    assert verdict.code == demand.code, verdict
    assert f"{claim} needs {demand.text}" in verdict.reason


@pytest.mark.parametrize("claim", EQUALITIES)
def test_what_the_breaks_start_from_is_accepted(claim):
    score, sizes = EQUALITIES[claim]
    assert verdict_on(build.limit_equality(claim, score, **sizes)).accepted


@pytest.mark.parametrize(
    "arguments",
    [(45, -126, "survives"), (46, -150, "survives"), (90, -125, "vanishes"), (4, 0, "vanishes")],
)
def test_saturation_must_bear_on_float32(arguments):
    verdict = verdict_on(build.saturation(*arguments))
    assert verdict.code == "claim"
    assert claims.FLOAT32.text in verdict.reason


def test_every_row_has_an_accepted_case():
    assert {(case["kind"], case["claim"]) for case in CASES.values()} == TABLE.keys()


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if case["kind"] != "identity"]
)
def test_a_sound_certificate_under_another_claim(name):
    """Accepted only where the other claim's demands are met as well, never by the label alone."""
    case = CASES[name]
    of_this_kind = {claim for kind, claim in TABLE if kind == case["kind"]}
    stranger = min(claims.CLAIMS - of_this_kind)
    for claim in sorted({*of_this_kind, stranger} - {case["claim"]}):
        verdict = verdict_on(build.sealed(case | {"claim": claim}))
        assert verdict.claim == claim
        if claim == stranger:
            assert verdict.code == "claim"
        elif not verdict.accepted:
            assert verdict.code in ("claim", "heads")


def test_an_identity_under_another_claim():
    case = CASES["A19.orders-orders"]
    for claim in ("A19.prop2", "B19.sac", "C20.rank"):
        assert verdict_on(build.sealed(case | {"claim": claim})).code == "claim"


def test_facts_are_printed_without_what_is_not_there():
    facts = Facts("rank", "C20.rank", kernel=(3, 5), heads=0)
    assert str(facts) == "kind rank, claim C20.rank, kernel (3, 5)"
    assert facts.size == "3x5"
