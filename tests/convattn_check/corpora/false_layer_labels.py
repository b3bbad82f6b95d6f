"""Layers that are every convolution, under a claim about other layers: a demand is not met."""

import certificate_builder as build
from certificate_cases import changed

from corpora.entry import named

# Claim: score, sizes that meet every demand, and the demands that they are to lack in turn.
PLAIN = {"kernel": (3, 3)}
PATCHED = PLAIN | {"patch": (2, 2)}
EQUALITIES = {
    "C20.lemma1": ("given", PLAIN, "limit given pixels image odd wide plain one-each"),
    "C20.theorem1": ("quadratic", PLAIN, "limit quadratic image odd wide plain one-each"),
    "C20.padding": ("quadratic", PLAIN, "limit quadratic pixels image odd wide plain one-each"),
    "C20.stride": ("quadratic", PLAIN | {"stride": (2, 1)},
                   "limit quadratic pixels image odd wide strided one-each"),
    "C20.dilation": ("quadratic", PLAIN | {"dilation": (1, 2)},
                     "limit quadratic pixels image odd wide dilated one-each"),
    "C20.sequence": ("quadratic", {"kernel": (3,)},
                     "limit quadratic pixels sequence odd wide plain one-each"),
    "L21.theorem1": ("bias", PATCHED, "limit bias image odd wide plain one-each"),
    "L21.wo": ("bias", PATCHED, "limit bias image odd wide plain one-each"),
    "L21.cor3": ("bias", PLAIN, "limit bias image odd wide plain pixels one-each"),
    "L21.cor4": ("bias", PATCHED, "limit bias image odd wide plain small one-each"),
    "L21.variants": ("bias", PATCHED | {"stride": (2, 2), "route": "tokens"},
                     "limit bias image odd wide variant one-each"),
    "L21.absolute": ("absolute", PLAIN, "limit absolute image odd wide plain one-each"),
    "L21.theorem6": ("bias", {"kernel": (1, 1), "patch": (2, 2)},
                     "limit bias image patches plain point one-each"),
    "S.dp2": ("enumerated", PLAIN, "limit enumerated one-each"),
    "S.polygon": ("polygon", PLAIN, "limit polygon four one-each"),
}  # fmt: skip
# Demand: the sizes that lack it.
LACKING = {
    "pixels": {"patch": (1, 2)},
    "odd": {"kernel": (3, 4)},
    "plain": {"dilation": (2, 1)},
    "strided": {"stride": (1, 1)},
    "wide": {"kernel": (1, 1)},
    "dilated": {"kernel": (3, 1)},  # the dilation is on the axis with K = 1
    "variant": {"kernel": (3, 1), "stride": (1, 1), "dilation": (1, 2)},
    "point": {"kernel": (3, 1)},
    "small": {"kernel": (7, 3)},
    "sequence": {"kernel": (3, 3)},
    "patches": {"patch": (1, 2)},
    "four": {"kernel": (3, 1)},
}
LACKING_ON_A_LINE = {
    "pixels": {"patch": (2,)},
    "odd": {"kernel": (4,)},
    "wide": {"kernel": (1,)},
    "plain": {"dilation": (2,)},
}
SCORES = ("given", "bias", "quadratic", "absolute", "enumerated", "polygon")


def one_head_more(body):
    """A head that attends as the first does, and has no value."""
    body["attention"]["targets"].append(body["attention"]["targets"][0])
    body["heads"] += 1
    if "forms" in body["attention"]:
        body["attention"]["forms"].append(body["attention"]["forms"][0])


def one_exponent_more(body):
    body["attention"]["exponents"].append(9)
    body["heads"] += 1


def limit_lacking(claim, demand):
    """A limit that is no certificate of its claim, for this demand alone."""
    score, sizes, _ = EQUALITIES[claim]
    if demand == "limit":
        return build.leaky_equality(claim, **sizes)
    if demand in SCORES:
        return build.limit_equality(claim, "bias" if score == "given" else "given", **sizes)
    if demand == "one-each":
        return changed(build.limit_equality(claim, score, **sizes), one_head_more)
    if demand == "image":
        lines = {"kernel": (1,) if claim == "L21.theorem6" else (3,)}
        patches = () if "pixels" in EQUALITIES[claim][2] else ("patch",)
        return build.limit_equality(claim, score, **lines, **dict.fromkeys(patches, (2,)))
    table = LACKING_ON_A_LINE if len(sizes["kernel"]) == 1 else LACKING
    return build.limit_equality(claim, score, **(sizes | table.get(demand, LACKING[demand])))


def finite_lacking(claim, sizes, **lacking):
    """The same for layers at finite scores: what is given, and what all of them share."""
    leaky = build.leaky_equality(claim, **sizes)
    return {
        "finite": build.limit_equality(claim, "bias", **sizes),
        "leaky": build.power_equality(claim, **sizes),
        "one-more": changed(leaky, one_head_more),
        **{name: build.leaky_equality(claim, **other) for name, other in lacking.items()},
    }


POINT, LINE = {"kernel": (1, 1)}, {"kernel": (3,)}
FINITE = {
    "S.finite": finite_lacking("S.finite", LINE),
    "S.pad": finite_lacking("S.pad", LINE, wide={"kernel": (1,)}),
    "S.sharpness": finite_lacking("S.sharpness", POINT, point={"kernel": (1, 2)}),
    "S.network": finite_lacking(
        "S.network", PLAIN, image=LINE, odd={"kernel": (2, 3)}, pixels=PATCHED
    ),
    "S.dp1": {
        "finite": build.limit_equality("S.dp1", "bias", **LINE),
        "powers": build.leaky_equality("S.dp1", **LINE),
        "one-more": changed(build.power_equality(**LINE), one_exponent_more),
    },
}


CERTIFICATES = named(
    {
        (claim, demand): limit_lacking(claim, demand)
        for claim, (_, _, demands) in EQUALITIES.items()
        for demand in demands.split(" ")
    },
    {
        (claim, demand): certificate
        for claim, lacking in FINITE.items()
        for demand, certificate in lacking.items()
    },
)
