"""Files that are no certificates, or not as they were sealed."""

import copy

import certificate_builder as build
from certificate_cases import CASES, put, update

from corpora.entry import altered, named
from corpora.true_equality import powers

POINT = CASES["point"]
TEXT = build.written(POINT)
SCHEMA = '"schema":"convattn-certificate/1"'


def digest_of(part, digest):
    certificate = copy.deepcopy(POINT)
    certificate["digests"][part] = digest
    return certificate


def of_conventions(**changes):
    return build.sealed(POINT | {"conventions": build.CONVENTIONS | changes})


def without(field):
    return build.sealed({name: value for name, value in POINT.items() if name != field})


BYTES = {  # from the certificate of K = 1 on patches of two
    "form-empty": "",
    "form-truncated": TEXT[:-20],
    "form-two-certificates": TEXT + TEXT,
    "form-list": "[]\n",
    "form-float": TEXT.replace('"heads":1', '"heads":1.0'),
    "form-exponent": TEXT.replace('"heads":1', '"heads":1e0'),
    "form-not-a-number": TEXT.replace('"heads":1', '"heads":NaN'),
    "form-byte-order-mark": "\ufeff" + TEXT,
    "form-latin-1": TEXT.replace("small", "gro\u00df").encode("latin-1"),
    "form-no-newline": TEXT[:-1],
    "form-two-newlines": TEXT + "\n",
    "form-carriage-return": TEXT.replace("\n", "\r\n"),
    "form-space": TEXT.replace('"heads":1', '"heads": 1'),
    "form-minus-zero": TEXT.replace("[0,0]", "[0,-0]"),
    "form-repeated-key": TEXT.replace('"heads":1', '"heads":2,"heads":1'),
    "form-unsorted-keys": TEXT.replace(f",{SCHEMA}", "").replace("{", f"{{{SCHEMA},", 1),
    "form-escape": TEXT.replace("small", "sm\\u0061ll"),
}
TOP = {
    "schema-two": build.sealed(POINT | {"schema": "convattn-certificate/2"}),
    "query-minus-key": of_conventions(shift="query - key"),
    "kernel-order": of_conventions(kernel="OIHW"),
    "unknown-claim": build.sealed(POINT | {"claim": "C20.theorem2"}),
    "unknown-kind": build.sealed(POINT | {"kind": "proof"}),
    "body-of-another-kind": build.sealed(POINT | {"kind": "rank"}),
    "no-statement": without("statement"),
    "an-author": build.sealed(POINT | {"author": "me"}),
    "another-statement": POINT | {"statement": "Something else."},
    "another-claim": CASES["theorem1"] | {"claim": "C20.padding"},
    "another-body": CASES["wo"] | {"body": CASES["patches"]["body"]},
    "digest-in-capitals": digest_of("body", POINT["digests"]["body"].upper()),
    "digest-of-nothing": digest_of("specification", "0" * 64),
    "bases-without-a-denominator": powers(kernel=(2,), bases=[f"1/{2**521}", f"1/{3**330}"]),
}
CHANGES = {
    "finite": {
        "rational-not-lowest": put(["attention", "leak"], "2/6"),
        "rational-minus-below": put(["values", "entries", 9, 2], "1/-2"),
        "rational-as-decimal": put(["attention", "leak"], "0.5"),
        "heads-beyond-the-bound": put(["heads"], 1026),
    },
    "wo": {
        "rational-over-one": put(["values", "entries", 0], [0, 8, "1/1"]),
        "rational-plus": put(["values", "entries", 0], [0, 8, "+1"]),
        "rational-leading-zero": put(["values", "entries", 0], [0, 8, "01"]),
        "rational-as-integer": put(["values", "entries", 0], [0, 8, 1]),
        "true-for-one": put(["heads"], True),
        "one-kernel": put(["kernel"], "one"),
        "false-for-zero": put(["offsets", 4], [0, False]),
        "offsets-beyond-the-bound": update(kernel_size=[33, 32], patch_size=[1, 1]),
    },
    "pixel_heads": {
        "rational-minus-zero": put(["separator", 1], "-0"),
        "rational-zero-over": put(["separator", 1], "0/2"),
        "rational-over-zero": put(["separator", 0], "1/0"),
        "inclusion-of-4000-digits": put(["inclusion", 0, 0], ["9" * 4000, "9" * 4000]),
    },
    "patch_bound": {"integer-as-text": put(["determinant"], "1")},
    "powers_lagrange": {
        "master-of-many-digits": put(["values", "master", 0], -(2**1024)),
        "denominator-of-many-digits": put(["values", "denominators", 5], 2**1024 + 1),
    },
    "powers": {"power-of-many-bits": put(["attention", "exponents", 3], 1025)},
    "two_of_three": {
        "threshold-of-many-digits": put(["thresholds", 0], f"{4 * 10**40 - 1}/{10**40}"),
    },
    "A19.prop1-inverse": {"identity-of-many-digits": put(["tensors", "a", 0], str(10**60))},
}
TEXTS = {name: text if isinstance(text, bytes) else text.encode() for name, text in BYTES.items()}
CERTIFICATES = TEXTS | altered(CHANGES) | named(TOP)
