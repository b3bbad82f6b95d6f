"""The committed certificates: what the project promises, canonical, and all of them accepted."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from convattn.ledger.certificates.catalogue import certificates
from convattn.ledger.locations import certificates_directory
from convattn_check import check

SIZES = ((3, 1), (5, 1), (11, 1), (3, 2), (3, 16), (5, 16), (11, 4))
COMMITTED = sorted(certificates_directory().glob("*.json"))
CATALOGUE = dict(certificates())


def bodies(claim, kind):
    """The bodies of a claim's certificates of a kind, as committed."""
    texts = (json.loads(path.read_text("ascii")) for path in COMMITTED)
    return [text["body"] for text in texts if (text["claim"], text["kind"]) == (claim, kind)]


def test_names_are_unique_and_start_with_their_claim():
    names = [name for name, _ in certificates()]
    assert len(names) == len(set(names)) == len(COMMITTED)
    for name, certificate in CATALOGUE.items():
        claim, _, rest = name.removesuffix(".json").partition("-")
        assert name.endswith(".json")
        assert claim == certificate["claim"]
        assert rest


def test_no_two_certificates_say_the_same():
    specifications = [certificate["digests"]["body"] for certificate in CATALOGUE.values()]
    pairs = {
        (certificate["claim"], certificate["digests"]["body"]) for certificate in CATALOGUE.values()
    }
    assert len(pairs) == len(specifications)


@pytest.mark.parametrize(
    ("claim", "regime", "family", "more"),
    [
        ("C20.theorem1", "limit", "one_hot_limit", 0),
        ("L21.theorem1", "limit", "one_hot_limit", 0),
        ("S.finite", "finite", "leaky_one_hot", 1),
        ("S.dp1", "finite", "scalar_power", 1),
    ],
)
def test_the_theorems_hold_at_seven_sizes(claim, regime, family, more):
    found = bodies(claim, "equality")
    sizes = {(tuple(body["kernel_size"]), tuple(body["patch_size"])) for body in found}
    assert sizes == {((kernel,) * 2, (patch,) * 2) for kernel, patch in SIZES}
    for body in found:
        assert body["kernel"] == "every"
        assert body["regime"] == regime
        assert body["attention"]["family"] == family
        side = 2 * -(-(body["kernel_size"][0] - 1) // (2 * body["patch_size"][0])) + 1
        assert body["heads"] == side**2 + more


@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        ("C20.lemma1", "equality"),
        ("C20.padding", "equality"),
        ("C20.stride", "equality"),
        ("C20.dilation", "equality"),
        ("C20.sequence", "equality"),
        ("L21.wo", "equality"),
        ("L21.cor3", "equality"),
        ("L21.cor4", "equality"),
        ("L21.variants", "equality"),
        ("L21.absolute", "equality"),
        ("L21.theorem6", "equality"),
        ("S.dp2", "equality"),
        ("L21.theorem5", "lower_bound"),
        ("L21.theorem6", "lower_bound"),
        ("C20.lemma3", "no_shared_map"),
        ("C20.rank", "rank"),
        ("C20.alpha46", "saturation"),
        ("C20.theorem1", "border"),
        ("C20.padding", "border"),
        ("L21.theorem1", "border"),
        ("S.padding", "border"),
        ("S.saturation", "total_variation"),
        ("A19.equivariance", "commutant"),
    ],
)
def test_every_claim_has_its_certificates(claim, kind):
    assert bodies(claim, kind)


def test_the_lower_bounds_reach_the_numbers_of_heads_claimed():
    heads = {
        (body["kernel_size"][0], body["in_channels"], body["out_channels"]): body["heads"]
        for body in bodies("L21.theorem5", "lower_bound")
    }
    assert heads[3, 9, 1] == 9
    assert heads[3, 3, 3] == 9  # as many with three channels in, three out: sharper than printed
    assert heads[5, 25, 1] == 25
    boxes = bodies("L21.theorem6", "lower_bound")
    assert {body["heads"] for body in boxes} == {9}
    assert {body["patch_size"][0] for body in boxes} == {2, 3, 16}


def test_alpha_46_survives_in_float32_and_104_does_not():
    found = {body["alpha"]: body["conclusion"] for body in bodies("C20.alpha46", "saturation")}
    assert found[46] == "survives"
    assert found[104] == "vanishes"


def test_all_of_it_is_less_than_a_megabyte():
    assert sum(path.stat().st_size for path in COMMITTED) < 10**6


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_it_is_accepted_and_canonical(path):
    text = path.read_bytes()
    verdict = check(text)
    assert verdict.accepted, verdict.reason
    assert verdict.claim == path.name.partition("-")[0]
    certificate = json.loads(text)
    again = json.dumps(certificate, sort_keys=True, separators=(",", ":")) + "\n"
    assert text == again.encode("ascii")
    assert certificate == CATALOGUE[path.name]


def test_a_bare_interpreter_accepts_them_all(tmp_path):
    """Without site-packages, and with nothing on the path but a copy of the checker."""
    import convattn_check

    source = Path(convattn_check.__file__).parent
    (tmp_path / "convattn_check").symlink_to(source, target_is_directory=True)
    words = [sys.executable, "-S", "-m", "convattn_check", *map(str, COMMITTED)]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(COMMITTED)} accepted, 0 rejected" in done.stdout.splitlines()[-1]
    spoiled = tmp_path / COMMITTED[0].name
    spoiled.write_bytes(COMMITTED[0].read_bytes().replace(b'"kind":"', b'"kind":"un'))
    words = [*words, str(spoiled)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 1
