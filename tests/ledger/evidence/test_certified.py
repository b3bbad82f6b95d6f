"""Certified evidence passes for accepted certificates of the claim, and for nothing else."""

import hashlib
import json
import os
import re
import sys
from fractions import Fraction
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from convattn_check import check as judge
from convattn_check.convolution import Axis
from convattn_check.reading import canonical
from convattn_ledger import EvidenceFailed, Level
from convattn_ledger.certificates import stated
from convattn_ledger.certificates.catalogue import make_certificate
from convattn_ledger.certificates.given_kernel import kernel_heads_body
from convattn_ledger.certificates.total_variation import (
    bias_variation_body,
    quadratic_variation_body,
)
from convattn_ledger.certificates.two_layers import two_layers_body
from convattn_ledger.discovery import discover, load_claim
from convattn_ledger.evidence import certified, certified_identities, print_counterexample
from convattn_ledger.locations import certificates_directory, proofs_directory

FINITE, DP1 = "S.finite-K3-P1.json", "S.dp1-K3-P1.json"
MODULE = sys.modules["convattn_ledger.evidence.certified"]  # its name is the function's, too
WEAK = Path(__file__).parent / "weak_certificates"


def committed(name: str) -> bytes:
    return (certificates_directory() / name).read_bytes()


def test_the_committed_certificates_of_a_claim_pass(run):
    evidence = certified("S.finite")
    assert (evidence.name, evidence.level) == ("certificates", Level.CERTIFIED)
    assert evidence.assumes == "Python's integers and fractions"
    line = evidence.check(run)
    assert line.startswith("7 accepted: S.finite-K11-P1, ")
    assert "S.finite-K5-P16" in line


def test_a_pattern_selects(run):
    evidence = certified("L21.theorem6", "*-bound")
    assert evidence.name == "certificates *-bound"
    assert evidence.check(run).startswith("5 accepted: L21.theorem6-K3-P16-bound, ")
    assert certified("L21.theorem6", "K1-P2", name="K = 1").name == "K = 1"


K3 = committed(FINITE)
SPOILED = K3.replace(b'"heads":10', b'"heads":11')


@pytest.mark.parametrize(
    ("files", "pattern", "message"),
    [
        ({}, "S.finite-*", "no certificate matches"),
        ({FINITE: K3, "S.finite-K9-P9.json": SPOILED}, "S.finite-*", r"K9-P9\.json .* \(digest\)"),
        *(
            ({"S.finite-K1.json": content}, "S.finite-*", r"S\.finite-K1\.json rejected")
            for content in (b"", b"{}\n", b"\xff\xfe", b"[" * 10**5)
        ),
        ({FINITE: committed(DP1)}, "S.finite-*", r"K3-P1\.json is a certificate of S\.dp1"),
        (
            {"L21.theorem6-K1-P2-bound.json": committed("L21.theorem6-K1-P2.json")},
            "L21.theorem6-*-bound",
            "'equality', but should be of lower_bound",
        ),
        # A file name proves nothing: the body must have the size.
        ({"S.finite-K11-P1.json": K3}, "S.finite-K11-P1", r"none of the 1 .* has .*\[11, 11\]"),
    ],
)
def test_another_folder_certifies_nothing(run_in, files, pattern, message):
    assert SPOILED != K3
    with pytest.raises(EvidenceFailed, match=message):
        certified(*pattern.split("-", 1)).check(run_in(**files))


def test_a_rejected_file_does_not_harm_what_a_pattern_leaves_out(run_in):
    run = run_in(**{FINITE: K3, "S.finite-K9-P9.json": SPOILED})
    assert certified("S.finite", "K3-P1").check(run) == "1 accepted: S.finite-K3-P1"


def test_a_pipe_among_certificates_is_not_waited_for(run_in):
    run = run_in()
    os.mkfifo(Path(run.certificates) / "S.finite-K1.json")
    with pytest.raises(OSError, match="is a pipe or a device"):
        certified("S.finite").check(run)


def test_identities_are_those_that_are_committed(run):
    line = certified_identities("S.boundary", "the edge", "edge", pattern="edge*").check(run)
    assert line == "1 accepted: S.boundary-edge"
    with pytest.raises(ValueError, match=r"identities=\('mean',\) of S.boundary-edge\*, but the"):
        certified_identities("S.boundary", "the edge", "mean", pattern="edge*")


@pytest.mark.parametrize(("claim", "pattern"), [("S.finite", "K4-*"), ("S.absent", "*")])
def test_a_claim_without_committed_certificates_is_refused(claim, pattern):
    with pytest.raises(ValueError, match=r"no certificate .* is committed; .*make certificates"):
        certified(claim, pattern)


FOLDERS = {"S": "sharpened", "L21": "li2021", "C20": "cordonnier2020"}
TRIVIAL = sorted({path.name.split("-")[0] for path in WEAK.iterdir()})


def certified_pieces(claim):
    paper, name = claim.split(".")
    row, _ = load_claim(proofs_directory() / FOLDERS[paper] / f"{name}.py")
    return [piece for piece in row.evidence if piece.level is Level.CERTIFIED]


@pytest.mark.parametrize("claim", TRIVIAL)
def test_trivial_certificates_certify_no_claim(run, run_in, claim):
    """Sound certificates of K = 1, of one axis or of one channel are not what a claim says, nor are
    smaller numbers under the sizes that it names."""
    assert len(TRIVIAL) == 14
    (piece,) = certified_pieces(claim)
    weak = {path.name: path.read_bytes() for path in WEAK.glob(f"{claim}-*.json")}
    assert all(judge(text).accepted for text in weak.values())
    with pytest.raises(EvidenceFailed, match=r"none of the \d certificates has"):
        piece.check(run_in(**weak))
    assert "accepted" in piece.check(run)


def limits_alone():
    """Two layers in the limit, also where the claim speaks of finite scores."""
    for statement in stated.committed_files("S.depth", "K*x*").values():
        size, (patch, _), image = (statement[k] for k in ("kernel_size", "patch_size", "image"))
        yield two_layers_body, size, patch, image, False


def nonnegative_kernels():
    """Kernels without signs: none of them takes another head in the limit."""
    box, taps = np.ones((3, 3, 1, 1), int), np.eye(4, dtype=int).reshape(2, 2, 1, 4)
    for kernel, patch in ((np.ones((1, 1, 1, 1), int), 1), (taps, 1), (box, 2), (box, 16)):
        yield kernel_heads_body, kernel, patch


def two_keys():
    """The rows of the claim are of up to 1,156 keys."""
    yield from ((quadratic_variation_body, alpha, 2) for alpha in (3, 40))
    yield bias_variation_body, 40, 2


def resealed(name, change):
    """A committed certificate with its body changed in place."""
    value = json.loads(committed(name))
    change(value["body"])
    value["digests"]["body"] = hashlib.sha256(canonical(value["body"]).encode()).hexdigest()
    return f"{canonical(value)}\n".encode()


def wider(field):
    def change(body):
        body[field] = [[low + 1, high + 1] for low, high in body[field]]

    return change


def more_corners(body):
    body["attention"]["corners"] *= 10**6


def codes_far_apart(body):
    body["attention"]["codes"] = [10**6 * code for code in body["attention"]["codes"]]
    body["attention"]["spare"] *= 10**6


def spare_first(body):
    body["attention"]["codes"] = [code + 1 for code in body["attention"]["codes"]]
    body["attention"]["spare"] = 0


def other_leak(body):
    uniform_weight = Fraction(1, 10**6)
    body["attention"]["leak"] = str(uniform_weight)
    for entry in body["values"]["entries"]:
        entry[2] = str((1 if entry[0] == entry[1] else -uniform_weight) / (1 - uniform_weight))


def strided(body):
    """Of one output pixel of each patch alone."""
    body |= {"stride": [2, 2], "stride_route": "tokens"}
    body["pattern"] = [Axis(3, 2, 1, 2).pattern()] * 2


def spare_block(body):
    body["blocks"] += 1
    body["first"]["maps"] = [[*row, "0"] for row in body["first"]["maps"]]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("S.finite-K3-P2.json", strided),
        ("C20.padding-K3-P1.json", wider("ring")),
        ("S.pad-K4-P1-d2.json", wider("ring")),
        ("S.depth-K3x3-P1-limit.json", wider("margin")),
        ("S.depth-K3x3-P1-exact.json", spare_block),
        ("S.polygon-K5-P4.json", more_corners),
        ("S.dp2-K3-P1.json", codes_far_apart),
        ("S.dp2-K3-P1.json", spare_first),
        ("S.pad-K4-P1-d2.json", other_leak),
        ("S.network-K1-P1-s2.json", other_leak),
        ("S.sharpness-K1-P1.json", other_leak),
    ],
)
def test_more_zeros_channels_or_other_scores_than_a_claim_says_certify_nothing(
    run, run_in, name, change
):
    """C20.padding says (K - 1)/2 zeros on each side; more of them are true, and say less. A polygon
    of a million times as many corners is ahead by about 10⁻¹² of what S.polygon says."""
    pieces = certified_pieces(name.split("-")[0])
    files = {path.name: path.read_bytes() for path in certificates_directory().glob("*.json")}
    files[name] = resealed(name, change)
    assert judge(files[name]).accepted
    with pytest.raises(EvidenceFailed, match=r"none of the \d certificates has"):
        [piece.check(run_in(**files)) for piece in pieces]
    assert all("accepted" in piece.check(run) for piece in pieces)


@pytest.mark.parametrize(
    ("claim", "certificates"),
    [("S.depth", limits_alone), ("S.kernel", nonnegative_kernels), ("S.saturation", two_keys)],
)
def test_true_certificates_of_easier_cases_certify_no_claim(run, run_in, claim, certificates):
    """Limits where scores are to be finite, kernels or sizes at which nothing can be seen."""
    piece = certified_pieces(claim)[0]
    made = (make_certificate(claim, "Easy.", *arguments) for arguments in certificates())
    easy = {f"{claim}-K{n}x1.json": f"{canonical(one)}\n".encode() for n, one in enumerate(made)}
    assert all(judge(text).accepted for text in easy.values())
    with pytest.raises(EvidenceFailed, match=r"none of the \d certificates has"):
        piece.check(run_in(**easy))
    assert "accepted" in piece.check(run)


PIECES = [
    pytest.param(proof.path, piece.name, id=f"{proof.claim.id}: {piece.name}")
    for proof in discover(proofs_directory())
    for piece in proof.claim.evidence
    if piece.level is Level.CERTIFIED
]


def weaker(value):
    """The same with one number, word or entry changed, one after the other."""
    if isinstance(value, bool | None):
        return
    if isinstance(value, int):
        yield value - 1
        yield value + 1
    elif isinstance(value, str):
        yield f"{value}0"
    elif isinstance(value, list):
        yield value[:-1]
        for index, part in enumerate(value):
            for other in weaker(part):
                yield [*value[:index], other, *value[index + 1 :]]
    elif isinstance(value, dict):
        for key, part in value.items():
            yield {name: value[name] for name in value if name != key}
            for other in weaker(part):
                yield {**value, key: other}


def changed(certificate):
    """Certificates that state something else: each field of the statement, each of its numbers."""
    body, kind = certificate["body"], certificate["kind"]
    statement = stated.stated(certificate)
    for field in statement:
        if field == "heads" and kind == "two_layers":
            for layer in ("first", "second"):
                part = {**body[layer], "targets": [*body[layer]["targets"], None]}
                yield {**certificate, "body": {**body, layer: part}}
        elif field in ("attention", "first"):
            for name, value in statement[field].items():
                for other in islice(weaker(value), 4):
                    part = {**body[field], name: other}
                    yield {**certificate, "body": {**body, field: part}}
        elif field == "limit" and kind == "kernel_heads":
            yield {**certificate, "body": {**body, "limit": {"either": []}}}
        elif field in body and body[field] != "every" and kind != "identity":
            for other in islice(weaker(body[field]), 8):
                yield {**certificate, "body": {**body, field: other}}
    yield {**certificate, "kind": "rank" if kind != "rank" else "border"}


@pytest.fixture
def on_trust(run_in, monkeypatch):
    """A run over empty files that pass for the committed ones, the certificates, those asked for.

    The checker is not asked: a weaker certificate would be accepted, or may not exist.
    """
    stored, checked = {}, []
    statements = {}  # of the certificates as they are, by identity: most of the time otherwise

    def accepted(file):
        checked.append(file.name)
        if file.name not in stored:
            stored[file.name] = original = json.loads(committed(file.name))
            statements[id(original)] = original, stated.stated(original)
        return stored[file.name], ""

    def stated_once(certificate):
        if id(certificate) in statements:
            return statements[id(certificate)][1]
        return stated.stated(certificate)

    monkeypatch.setattr(MODULE, "_accepted", accepted)
    monkeypatch.setattr(MODULE, "stated", stated_once)
    return (
        run_in(**{file.name: b"" for file in certificates_directory().glob("*.json")}),
        stored,
        checked,
    )


@pytest.mark.parametrize(("path", "name"), PIECES)
def test_each_number_that_a_row_states_is_needed(path, name, on_trust):
    (piece,) = (piece for piece in load_claim(path)[0].evidence if piece.name == name)
    run, stored, checked = on_trust
    assert "accepted" in piece.check(run)
    assert checked
    for file in checked[:]:
        whole = stored[file]
        for other in changed(whole):
            stored[file] = other
            with pytest.raises(EvidenceFailed, match=r"none of the|should be of"):
                piece.check(run)
        stored[file] = whole
        (run.certificates / file).unlink()
        with pytest.raises(EvidenceFailed, match=r"none of the|no certificate matches"):
            piece.check(run)
        (run.certificates / file).touch()


def test_every_committed_certificate_is_needed_by_its_row(on_trust):
    run, _, checked = on_trust
    for path, name in (piece.values for piece in PIECES):
        next(piece for piece in load_claim(path)[0].evidence if piece.name == name).check(run)
    assert {*checked} == {file.name for file in run.certificates.iterdir()} == {*stated.committed()}


def test_a_row_names_the_leaks_that_it_is_certified_for():
    """A proof is for any leak, a certificate for one: neither larger nor smaller ones follow."""
    leaks = set()
    for path in certificates_directory().glob("*.json"):
        for uniform_weight in re.findall(r'"leak":"([^"]*)"', path.read_text()):
            leaks.add((path.name.split("-")[0], f"ε = {uniform_weight}"))
    assert len(leaks) == 9
    covered = {
        proof.claim.id: " ".join(
            item.covers for item in proof.claim.evidence if item.level is Level.CERTIFIED
        )
        for proof in discover(proofs_directory())
    }
    assert [pair for pair in leaks if pair[1] not in covered[pair[0]]] == []


def test_the_numbers_of_vision_transformers_are_stated_with_their_sizes():
    """K = 3, P = 16, RGB, d_H = 64: as S.headdim and S.width say in words."""
    size = {"kernel_size": [3, 3], "patch_size": [16, 16], "in_channels": 3, "out_channels": 3}
    size |= {"head_dimension": 64}
    rows = [
        ("S.headdim", {"regime": "limit", "necessary": 20, "sufficient": 20}),
        ("S.headdim", {"regime": "finite", "necessary": 24, "sufficient": 32}),
        ("S.width", {"regime": "limit", "count": 16}),
        ("S.width", {"regime": "finite", "count": 28}),
    ]
    for claim, numbers in rows:
        expected = size | numbers
        assert any(
            expected.items() <= statement.items()
            for statement in stated.committed_files(claim, "*").values()
        ), (claim, numbers)


def test_the_conclusion_and_the_numbers_of_a_counterexample(run):
    lines = print_counterexample(run, "C20.rank-h1-o3.json").splitlines()
    body = json.loads(committed("C20.rank-h1-o3.json"))["body"]
    assert lines[0] == judge(committed("C20.rank-h1-o3.json")).reason
    assert "  rank: 1" in lines
    assert [line.split(":")[0].strip() for line in lines[1:]] == sorted(body)


def test_a_counterexample_that_is_not_there(run):
    with pytest.raises(FileNotFoundError):
        print_counterexample(run, "C20.absent.json")
