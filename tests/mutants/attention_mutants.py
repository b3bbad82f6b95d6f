"""Certificates of equality whose heads are too few, or do not attend as they should."""

from mutants import subjects
from mutants.mutant import wrong_certificate
from mutants.subjects import amended, edited


def attention(**fields):
    """An edit of the attention."""
    return lambda body: body["attention"].update(fields)


def target(head, value):
    """An edit of one head's target."""
    return lambda body: body["attention"]["targets"].__setitem__(head, value)


def one_head_less(body):
    """Drop the last head, and say so."""
    body["heads"] -= 1
    del body["attention"]["targets"][-1], body["values"]["entries"][-1]


def without_square(body):
    """Leave -|k|² out of every form."""
    for form in body["attention"]["forms"]:
        form[-1][-2] = 0


def absolute_sign(body):
    """Look at q - target."""
    for form in body["attention"]["forms"]:
        form[-1][:2] = [-entry for entry in form[-1][:2]]


def base(index, value):
    """An edit of one base."""
    return lambda body: body["attention"]["bases"].__setitem__(index, value)


MUTANTS = (
    wrong_certificate(
        "certificate-head-twice",
        "Two heads look at the same offset, and none at another.",
        subjects.LIMIT_BIAS,
        edited(subjects.LIMIT_BIAS, target(1, [-1, -1])),
        r"identity: sum over h of \(c at \(-1, -1\)",
    ),
    wrong_certificate(
        "certificate-head-missing",
        "One head is forgotten, but still counted.",
        subjects.LIMIT_BIAS,
        edited(subjects.LIMIT_BIAS, lambda body: body["attention"]["targets"].pop()),
        r"heads: heads is 9, but the attention describes 8",
    ),
    wrong_certificate(
        "certificate-one-head-less",
        "K² - 1 heads are claimed to do.",
        subjects.LIMIT_BIAS,
        edited(subjects.LIMIT_BIAS, one_head_less),
        r"heads: L21\.theorem1 needs as many heads as offsets",
    ),
    wrong_certificate(
        "certificate-leak-of-one",
        "ε = 1 leaves nothing of the target.",
        subjects.FINITE,
        edited(subjects.FINITE, attention(leak="1")),
        r"attention: leak is 1, expected 0 < leak < 1",
    ),
    wrong_certificate(
        "certificate-leak-negative",
        "ε is negative: the other keys would have negative weights.",
        subjects.FINITE,
        edited(subjects.FINITE, attention(leak="-1/2")),
        r"attention: leak is -1/2",
    ),
    wrong_certificate(
        "certificate-limit-taken-for-equality",
        "One-hot heads are certified for finite parameters.",
        subjects.QUADRATIC,
        amended(subjects.QUADRATIC, regime="finite"),
        r"realizable: head 0 has .*this is not a softmax in the regime 'finite'",
    ),
    wrong_certificate(
        "certificate-bases-alike",
        "Two offsets have the same base, so that no powers tell them apart.",
        subjects.SCALAR,
        edited(subjects.SCALAR, base(1, "2")),
        r"attention: bases .* expected distinct",
    ),
    wrong_certificate(
        "certificate-base-one",
        "An offset has the base 1, like every key that is no offset.",
        subjects.SCALAR,
        edited(subjects.SCALAR, base(0, "1")),
        r"attention: bases .* expected distinct positive rationals but 1",
    ),
    wrong_certificate(
        "certificate-spare-code-taken",
        "All other shifts share the code of an offset.",
        subjects.ENUMERATED,
        edited(subjects.ENUMERATED, attention(spare=8)),
        r"attention: codes .* and spare 8, expected distinct",
    ),
    wrong_certificate(
        "certificate-absolute-without-square",
        "The absolute form has no -|k|², so the furthest key wins.",
        subjects.ABSOLUTE,
        edited(subjects.ABSOLUTE, without_square),
        r"attention: form 0 is ",
    ),
    wrong_certificate(
        "certificate-absolute-sign",
        "The absolute form looks at q - target.",
        subjects.ABSOLUTE,
        edited(subjects.ABSOLUTE, absolute_sign),
        r"attention: form 0 is ",
    ),
)
