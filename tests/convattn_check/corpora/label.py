"""What the checker says that a claim needs, and certificates that lack one of these things."""

from corpora.entry import entry

# Word: what the checker says that the claim needs.
TEXTS = {
    "limit": "regime 'limit'",
    "finite": "regime 'finite'",
    "given": "score 'given'",
    "bias": "score 'bias'",
    "quadratic": "score 'quadratic'",
    "absolute": "score 'absolute'",
    "enumerated": "score 'enumerated'",
    "polygon": "score 'polygon'",
    "leaky": "family 'leaky_one_hot'",
    "powers": "family 'scalar_power'",
    "pixels": "patch size 1",
    "odd": "an odd kernel",
    "sequence": "one axis",
    "image": "two axes",
    "plain": "dilation 1 and stride 1",
    "strided": "some stride above 1",
    "wide": "some K above 1",
    "dilated": "a dilation above 1 on an axis with K above 1",
    "variant": "some stride above 1, or a dilation above 1 on an axis with K above 1",
    "small": "3 <= K <= 2P + 1",
    "point": "K = 1",
    "square": "K and P alike on both axes",
    "patches": "P >= 2",
    "four": "at least 4 offsets",
    "one-each": "as many heads as offsets",
    "one-more": "one head more than offsets",
    "nine": "9 heads",
    "full": "min(prod K, D_in * D_out) heads",
    "several": "at least 2 heads",
    "spanning": "at least K heads",
    "float32": "alpha >= 46 and exponent >= -149 if the weight survives (in float32), "
    "exponent <= -126 if not",
    "several-nodes": "at least two nodes",
    "unit-shifts": "the shifts +1 and -1 on each axis, and no others",
    "commutant": "dimension 1 on the bare grid, as many as nodes on a torus",
    "generic": "min((2m+1)^axes, (2P-1)^axes * D_in * D_out) heads",
    "composed": "as many heads as offsets on the first and the second axis, one more at finite "
    "scores",
    "room": "more tokens than the offsets reach on every axis",
    "below": "tokens - reach - 1 heads",
    "tiles": "K = 2Pm + 1 with m >= P >= 2, and several channel pairs",
    "narrow": "heads narrower than the centre's map",
    "shared": "fewer heads than one-hot heads whose maps are split",
}
COUNTS = ("one-each", "one-more", "nine", "full", "several", "spanning", "generic", "composed",
          "below", "shared")  # fmt: skip


def mislabelled(certificate, claim, demand, *more, fault="label"):
    """A certificate that does not meet this demand of its claim; `more` tells it from others."""
    code = "heads" if demand in COUNTS else "tokens" if demand == "room" else "claim"
    sound = "sound, and no certificate of" if fault == "label" else "nothing follows for"
    return entry(
        "-".join((claim, demand, *more)),
        certificate,
        f"{sound} {claim}, which needs {TEXTS[demand]}",
        f"{claim} needs {TEXTS[demand]}; given",
        code=code,
        fault=fault,
    )
