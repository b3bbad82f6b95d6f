"""Files that are no certificates, or not as they were sealed."""

import copy

import certificate_builder as build
from certificate_cases import CASES, put

from corpora.entry import Entry, entry, falsehoods, update
from corpora.true_equality import powers

POINT = CASES["point"]
TEXT = build.written(POINT)
SCHEMA = '"schema":"convattn-certificate/1"'


def raw(slug, text, code, reason, why):
    """Bytes that were made from the certificate of K = 1 on patches of two."""
    content = text if isinstance(text, bytes) else text.encode()
    return Entry(f"form-{slug}", content, "", "", why, reason, code, "form")


def relabelled(slug, certificate, code, reason, why, fault):
    return entry(slug, certificate, why, reason, code=code, fault=fault)


def digest_of(part, digest):
    certificate = copy.deepcopy(POINT)
    certificate["digests"][part] = digest
    return certificate


def without(field):
    return build.sealed({name: value for name, value in POINT.items() if name != field})


ABSENT = Entry(
    "form-no-such-file", None, "", "", "there is no such file", "cannot be read", "unreadable",
    "form",
)  # fmt: skip
BYTES = [
    raw("empty", "", "malformed", "this is not JSON", "an empty file"),
    raw("truncated", TEXT[:-20], "malformed", "this is not JSON", "the end is lost"),
    raw("two-certificates", TEXT + TEXT, "malformed", "this is not JSON", "one file, one object"),
    raw("list", "[]\n", "malformed", "expected an object", "a list"),
    raw("float", TEXT.replace('"heads":1', '"heads":1.0'), "malformed",
        "the number '1.0' is not an integer", "1.0 is a float"),
    raw("exponent", TEXT.replace('"heads":1', '"heads":1e0'), "malformed",
        "the number '1e0' is not an integer", "1e0 is a float"),
    raw("not-a-number", TEXT.replace('"heads":1', '"heads":NaN'), "malformed",
        "the number 'NaN' is not an integer", "NaN is not JSON"),
    raw("byte-order-mark", "\ufeff" + TEXT, "encoding", "bytes beyond ASCII",
        "a byte order mark stands before the object"),
    raw("latin-1", TEXT.replace("small", "gro\u00df").encode("latin-1"), "encoding",
        "bytes beyond ASCII", "a letter beyond ASCII"),
    raw("no-newline", TEXT[:-1], "canonical", "are not the canonical text",
        "the newline at the end is missing"),
    raw("two-newlines", TEXT + "\n", "canonical", "are not the canonical text",
        "two newlines at the end"),
    raw("carriage-return", TEXT.replace("\n", "\r\n"), "canonical", "are not the canonical text",
        "the line ends as on another system"),
    raw("space", TEXT.replace('"heads":1', '"heads": 1'), "canonical",
        "are not the canonical text", "a space after a colon"),
    raw("minus-zero", TEXT.replace("[0,0]", "[0,-0]"), "canonical", "are not the canonical text",
        "-0 is 0 in another form"),
    raw("repeated-key", TEXT.replace('"heads":1', '"heads":2,"heads":1'), "canonical",
        "are not the canonical text", "heads is 2 and then 1: readers differ in which they take"),
    raw("unsorted-keys", TEXT.replace(f",{SCHEMA}", "").replace("{", f"{{{SCHEMA},", 1),
        "canonical", "are not the canonical text", "schema stands first"),
    raw("escape", TEXT.replace("small", "sm\\u0061ll"), "canonical", "are not the canonical text",
        "an escape for a letter that needs none"),
]  # fmt: skip
TOP = [
    ("schema-two", build.sealed(POINT | {"schema": "convattn-certificate/2"}), "schema",
     "expected 'convattn-certificate/1'", "another version of the format", "form"),
    ("query-minus-key", build.sealed(POINT | {"conventions": build.CONVENTIONS
     | {"shift": "query - key"}}), "schema", "conventions", "other conventions", "form"),
    ("kernel-order", build.sealed(POINT | {"conventions": build.CONVENTIONS | {"kernel": "OIHW"}}),
     "schema", "conventions", "another order of the kernel's entries", "form"),
    ("unknown-claim", build.sealed(POINT | {"claim": "C20.theorem2"}), "claim",
     "claim 'C20.theorem2', expected one of", "there is no such claim", "label"),
    ("unknown-kind", build.sealed(POINT | {"kind": "proof"}), "malformed", "kind is 'proof'",
     "there is no such kind", "form"),
    ("body-of-another-kind", build.sealed(POINT | {"kind": "rank"}), "malformed",
     "body lacks", "the body of an equality, called a rank", "form"),
    ("no-statement", without("statement"), "malformed", "lacks ['statement']",
     "a field is missing", "form"),
    ("an-author", build.sealed(POINT | {"author": "me"}), "malformed", "the unknown ['author']",
     "a field too many", "form"),
    ("another-statement", POINT | {"statement": "Something else."}, "stale",
     "digests.specification", "the statement was changed after it was sealed", "digest"),
    ("another-claim", CASES["theorem1"] | {"claim": "C20.padding"}, "stale",
     "digests.specification", "the label was changed after it was sealed", "digest"),
    ("another-body", CASES["wo"] | {"body": CASES["patches"]["body"]}, "digest", "digests.body",
     "a sound body that was sealed elsewhere", "digest"),
    ("digest-in-capitals", digest_of("body", POINT["digests"]["body"].upper()), "digest",
     "digests.body", "the digest is written in small letters", "digest"),
    ("digest-of-nothing", digest_of("specification", "0" * 64), "stale", "digests.specification",
     "64 zeros are no digest of it", "digest"),
]  # fmt: skip
NUMBERS = [
    ("rational-not-lowest", "finite", put(["attention", "leak"], "2/6"), "malformed",
     "expected lowest terms", "2/6 is 1/3 in another form"),
    ("rational-over-one", "wo", put(["values", "entries", 0], [0, 8, "1/1"]), "malformed",
     "'p' not 'p/1'", "1/1 is written 1"),
    ("rational-minus-below", "finite", put(["values", "entries", 9, 2], "1/-2"), "malformed",
     "expected a rational 'p' or 'p/q'", "the sign belongs above the line"),
    ("rational-plus", "wo", put(["values", "entries", 0], [0, 8, "+1"]), "malformed",
     "expected a rational", "+1 is written 1"),
    ("rational-minus-zero", "pixel_heads", put(["separator", 1], "-0"), "malformed",
     "expected a rational", "-0 is written 0"),
    ("rational-zero-over", "pixel_heads", put(["separator", 1], "0/2"), "malformed",
     "expected lowest terms", "0/2 is written 0"),
    ("rational-over-zero", "pixel_heads", put(["separator", 0], "1/0"), "malformed",
     "expected a rational", "a division by zero"),
    ("rational-leading-zero", "wo", put(["values", "entries", 0], [0, 8, "01"]), "malformed",
     "expected a rational", "01 is written 1"),
    ("rational-as-decimal", "finite", put(["attention", "leak"], "0.5"), "malformed",
     "expected a rational", "0.5 is written 1/2"),
    ("integer-as-text", "patch_bound", put(["determinant"], "1"), "malformed",
     "expected an integer", "an integer in quotes"),
    ("rational-as-integer", "wo", put(["values", "entries", 0], [0, 8, 1]), "malformed",
     "expected a rational", "a rational without quotes"),
    ("true-for-one", "wo", put(["heads"], True), "malformed", "heads is True",
     "true is not the integer 1"),
    ("one-kernel", "wo", put(["kernel"], "one"), "malformed", "kernel is 'one', expected ['every']",
     "an equality is about every kernel"),
    ("false-for-zero", "wo", put(["offsets", 4], [0, False]), "offsets", "[0, False]",
     "false is not the integer 0"),
]  # fmt: skip
COST = [
    ("bases-without-a-denominator", powers(kernel=(2,), bases=[f"1/{2**521}", f"1/{3**330}"]),
     None, "cost", "common denominator", "true; the denominators have a multiple of 1,045 bits"),
    ("inclusion-of-4000-digits", "pixel_heads",
     put(["inclusion", 0, 0], ["9" * 4000, "9" * 4000]), "cost", "bits",
     "false; but its numbers are refused before they are multiplied"),
    ("master-of-many-digits", "powers_lagrange", put(["values", "master", 0], -(2**1024)), "cost",
     "expected numbers below", "the lowest coefficient has 1,025 bits"),
    ("denominator-of-many-digits", "powers_lagrange",
     put(["values", "denominators", 5], 2**1024 + 1), "cost", "expected numbers below",
     "the last denominator has 1,025 bits"),
    ("power-of-many-bits", "powers", put(["attention", "exponents", 3], 1025), "cost",
     "the powers take up to 4100 bits", "the power 4^1025, at three bits and one for each factor"),
    ("offsets-beyond-the-bound", "wo", update(kernel_size=[33, 32], patch_size=[1, 1]), "range",
     "more than 1024 offsets", "1,056 of them; what else is wrong is not asked"),
    ("heads-beyond-the-bound", "finite", put(["heads"], 1026), "range",
     "heads is 1026, expected 1 to 1025", "one more than any equality has"),
    ("threshold-of-many-digits", "two_of_three", put(["thresholds", 0],
     f"{4 * 10**40 - 1}/{10**40}"), "range", "of over 40 digits",
     "true; numerator and denominator have 41 digits"),
    ("identity-of-many-digits", "A19.prop1-inverse", put(["tensors", "a", 0], str(10**60)), "cost",
     "expected", "an entry of an identity with 61 digits"),
]  # fmt: skip
ENTRIES = [
    *BYTES,
    ABSENT,
    *(relabelled(*row) for row in TOP),
    *falsehoods(NUMBERS, "form"),
    *falsehoods(COST, "cost"),
]
