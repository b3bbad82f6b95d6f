"""tests/incorrect/ and tests/correct/: the checker says of every file what its manifest says."""

import ast
import json
from collections import Counter
from pathlib import Path

import pytest
from corpora.__main__ import CORPORA
from corpora.manifests import CORRECT, INCORRECT, MANIFESTS, ROOT
from layer_by_definition import convolution, grid, layer

import convattn_check
from convattn_check import check
from convattn_check.checking import CHECKS
from convattn_check.claims import TABLE
from convattn_check.command import main
from convattn_check.cost import Work
from convattn_check.formula import Evaluation

# No file has them: a mistake of the checker's own, and of the formulas that it holds itself.
OURS = {"internal", "formula"}


def disagreements(folder, entries, capsys, *options):
    """What the command line says of these files and their manifest does not."""
    files = [str(ROOT / folder / entry["file"]) for entry in entries]
    status = main([*files, "--json", *options])
    verdicts = json.loads(capsys.readouterr().out)
    assert status == (not all(verdict["accepted"] for verdict in verdicts))
    return [
        verdict
        for entry, verdict in zip(entries, verdicts, strict=True)
        if verdict["accepted"] != ("code" not in entry)
        or verdict["code"] != entry.get("code", "")
        or entry["reason"] not in verdict["reason"]
        or (verdict["accepted"] and verdict["claim"] != entry["claim"])
    ]


def test_every_falsehood_is_refused_for_its_reason(capsys):
    assert disagreements("incorrect", INCORRECT, capsys) == []


def counting(method, counts):
    """A method that adds what it adds to the steps of its object to `counts` as well."""

    def count(self, *arguments):
        before = self.steps
        method(self, *arguments)
        counts.append(self.steps - before)

    return count


def test_every_truth_is_accepted_in_its_number_of_steps(monkeypatch):
    """Nothing that is computed is left out of the count, and it is the same on every machine."""
    counts = []
    monkeypatch.setattr(Work, "add", counting(Work.add, counts))
    monkeypatch.setattr(Evaluation, "_count", counting(Evaluation._count, counts))
    for entry in CORRECT:
        counts.clear()
        verdict = check((ROOT / "correct" / entry["file"]).read_bytes())
        assert (verdict.accepted, verdict.claim) == (True, entry["claim"]), (entry["file"], verdict)
        assert entry["reason"] in verdict.reason
        assert sum(counts) == entry["steps"], entry["file"]


@pytest.mark.slow
def test_without_digests_the_mathematics_decides(capsys):
    """All is refused that was not only sealed elsewhere."""
    other = [entry for entry in INCORRECT if entry["fault"] != "digest"]
    assert disagreements("incorrect", other, capsys, "--ignore-digests") == []
    sealed = [entry for entry in INCORRECT if entry["fault"] == "digest"]
    accepted = disagreements("incorrect", sealed, capsys, "--ignore-digests")
    assert [verdict["accepted"] for verdict in accepted] == [True] * len(sealed)


@pytest.mark.parametrize("change", [{"code": "offsets"}, {"reason": "pattern[1] is"}])
def test_a_wrong_manifest_is_reported(change, capsys):
    (entry,) = (entry for entry in INCORRECT if entry["file"] == "equality-tap-swapped.json")
    assert disagreements("incorrect", [entry], capsys) == []
    assert len(disagreements("incorrect", [entry | change], capsys)) == 1


@pytest.mark.parametrize("folder", CORPORA)
def test_the_files_are_those_that_the_generator_writes(folder):
    """`make corpora` writes them."""
    committed = {path.name: path.read_bytes() for path in (ROOT / folder).iterdir()}
    committed.pop("manifest.json")
    assert committed.keys() == CORPORA[folder].keys()
    assert [name for name, text in CORPORA[folder].items() if committed[name] != text] == []


@pytest.mark.parametrize("folder", CORPORA)
def test_the_manifest_names_each_file_with_its_kind_and_claim(folder):
    entries = MANIFESTS[folder]["certificates"]
    rows = {entry["file"]: (entry["kind"], entry["claim"]) for entry in entries}
    assert len(rows) == len(entries)
    assert rows.keys() - CORPORA[folder].keys() <= {"form-no-such-file.json"}
    for file, content in CORPORA[folder].items():
        certificate = {} if file.startswith("form-") else json.loads(content)
        assert rows[file] == (certificate.get("kind", ""), certificate.get("claim", ""))


def test_the_corpora_are_small_and_no_file_is_there_twice():
    contents = [content for files in CORPORA.values() for content in files.values()]
    assert sum(map(len, contents)) < 1_000_000
    assert len(set(contents)) == len(contents)
    assert {entry["fault"] for entry in INCORRECT} == MANIFESTS["incorrect"]["faults"].keys()


def test_every_kind_has_falsehoods_and_truths():
    false = Counter(entry["kind"] for entry in INCORRECT if entry["fault"] == "false")
    true = Counter(entry["kind"] for entry in CORRECT)
    assert all(false[kind] >= 4 and true[kind] >= 3 for kind in CHECKS), (false, true)
    mislabelled = {(e["kind"], e["claim"]) for e in INCORRECT if e["code"] in ("claim", "heads")}
    assert mislabelled >= {row for row, demands in TABLE.items() if demands}


def codes_of_the_checker():
    """Whatever stands where a code is expected; computed ones are among the others."""
    position = {"require": 1, "Reject": 0, "Demand": 0, "Verdict": 2}
    codes = {"stale", "digest", "internal"}
    for path in Path(convattn_check.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = node.func.id if isinstance(node, ast.Call) and hasattr(node.func, "id") else ""
            if name in position and len(node.args) > position[name]:
                code = node.args[position[name]]
                codes |= {code.value} if isinstance(code, ast.Constant) else set()
    return codes


def test_every_code_of_the_checker_occurs():
    codes = codes_of_the_checker()
    assert len(codes) > 40
    assert {entry["code"] for entry in INCORRECT} == codes - OURS


def test_the_documentation_has_a_row_for_every_code():
    text = (ROOT.parent / "docs" / "certificates.md").read_text("utf-8")
    table = text.split("## Reason codes")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    documented = {code.strip(" `") for row in rows for code in row.split(",")}
    assert documented == codes_of_the_checker()


# Layers, evaluated: what is false is false, and what is true is true.


def agrees(body):
    """Whether the layer is the convolution, on one image of three tokens by two."""
    sides = [n * p for n, p in zip((3, 2), body["patch_size"], strict=False)]
    image = {x: [(7 * n * n + 3 * n) % 11 - 4] for n, x in enumerate(grid(sides))}
    kernel = {index: [[n * n + n + 1]] for n, index in enumerate(grid(body["kernel_size"]))}
    arguments = body, image, sides, kernel, (1, 1)
    return layer(*arguments) == convolution(*arguments)


def bodies(folder, entries, choose):
    """Those that are small: each layer is evaluated pixel by pixel."""
    for entry in entries:
        if entry["kind"] == "equality" and choose(entry):
            body = json.loads((ROOT / folder / entry["file"]).read_bytes())["body"]
            if len(body["offsets"]) <= 9 and max(*body["patch_size"], *map(max, body["ring"])) <= 3:
                yield entry["file"], body


def test_layers_that_are_false_differ():
    chosen = bodies("incorrect", INCORRECT, lambda entry: entry["code"] in ("identity", "ring"))
    wrong = {name: agrees(body) for name, body in chosen}
    assert len(wrong) > 15
    assert [name for name, equal in wrong.items() if equal] == []


def test_layers_that_are_true_agree():
    right = {name: agrees(body) for name, body in bodies("correct", CORRECT, lambda entry: True)}
    assert len(right) > 50
    assert [name for name, equal in right.items() if not equal] == []


def test_mislabelled_layers_agree():
    """Their mathematics is right; it is the claim that says more."""
    ends = ("-odd.json", "-four.json", "-plain.json", "-given.json", "-leaky.json")
    chosen = bodies("incorrect", INCORRECT, lambda entry: entry["file"].endswith(ends))
    equal = [agrees(body) for _, body in chosen]
    assert len(equal) > 10
    assert all(equal)
