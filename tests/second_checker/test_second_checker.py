"""The checker that is proved in Coq and the one in Python give the same verdicts."""

import copy
import json
import subprocess

import pytest
from second_checker.second_checker_runs import (
    NOT_COVERED,
    ROOT,
    certificates,
    committed,
    differences,
    run,
    word,
    written,
)

from convattn_check import check
from convattn_check.checking import CHECKS
from convattn_check.reading import canonical

COVERED = ("equality", "lower_bound")

pytestmark = pytest.mark.slow


def corpus(folder):
    """The files of a corpus but for those that the first checker refuses for digests alone."""
    manifest = json.loads((ROOT / "tests" / folder / "manifest.json").read_text("ascii"))
    entries = (entry for entry in manifest["certificates"] if entry.get("fault") != "digest")
    return [ROOT / "tests" / folder / entry["file"] for entry in entries]


def test_no_falsehood_of_the_corpus_is_accepted(program):
    paths = corpus("incorrect")
    lines = run(program, *paths)[1]
    assert [line for line in lines if word(line) == "ACCEPT"] == []
    assert sum(word(line) == "REJECT" for line in lines) >= 200


def test_every_truth_of_the_corpus_is_accepted_where_it_is_covered(program):
    paths = corpus("correct")
    lines = run(program, *paths)[1]
    assert [line for line in lines if word(line) == "REJECT"] == []
    assert sum(word(line) == "ACCEPT" for line in lines) >= 50
    covered = [json.loads(path.read_text())["kind"] in COVERED for path in paths]
    assert sum(covered) >= sum(word(line) == "ACCEPT" for line in lines)


def test_both_accept_every_committed_certificate_that_is_covered(program):
    status, lines = run(program, *committed())
    assert status == NOT_COVERED
    assert len(lines) == len(committed())
    kinds = [json.loads(path.read_text())["kind"] for path in committed()]
    expected = ["ACCEPT" if kind in COVERED else "NOT COVERED" for kind in kinds]
    assert [word(line) for line in lines] == expected
    assert expected.count("ACCEPT") == 97
    assert differences(program, committed()) == []


def numbers(value, path=()):
    """The paths to every integer and rational string."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return [value for key, item in pairs for value in numbers(item, (*path, key))]
    if isinstance(value, str):
        return [path] if value.lstrip("-")[:1].isdigit() else []
    return [path] if isinstance(value, int) else []


def at(value, path):
    for key in path:
        value = value[key]
    return value


def change_numbers(body):
    """One number of each field, and of each part of it, one more than it was."""
    fields = {}
    for path in numbers(body):
        part = path[:2] if path[0] in ("attention", "values") else path[:1]
        fields.setdefault(part, []).append(path)
    for paths in fields.values():
        for path in {paths[0], paths[len(paths) // 2], paths[-1]}:
            changed = copy.deepcopy(body)
            old = at(changed, path)
            more = old + 1 if isinstance(old, int) else f"-{old}".replace("--", "")
            at(changed, path[:-1])[path[-1]] = more
            yield changed


def lists(value, path=()):
    """The paths to every list that is not empty."""
    if isinstance(value, list) and value:
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in pairs if isinstance(value, dict | list) else ():
        if isinstance(item, dict | list):
            yield from lists(item, (*path, key))


def change_lists(body, change):
    for path in list(lists(body))[:40]:
        changed = copy.deepcopy(body)
        change(at(changed, path))
        yield changed


def drop_last(items):
    del items[-1]


def turn(items):
    items.append(items.pop(0))


def repeat(items):
    items.append(copy.deepcopy(items[0]))


def other_words(body):
    words = {"regime": "finite limit", "stride_route": "tokens subsample", "kernel": "every some"}
    for field, options in words.items():
        if isinstance(body.get(field), str):
            yield from ({**body, field: option} for option in options.split())
    for score in ("given", "bias", "quadratic", "absolute"):
        if "score" in body.get("attention", {}):
            yield {**body, "attention": {**body["attention"], "score": score}}


def other_types(body):
    for field in body:
        yield from ({**body, field: value} for value in (None, True, 1, "1", [], {}, [[]], [{}]))
        yield {name: value for name, value in body.items() if name != field}
    yield {**body, "more": 1}


MUTATIONS = {
    "numbers": change_numbers,
    "drop_last": lambda body: change_lists(body, drop_last),
    "turn": lambda body: change_lists(body, turn),
    "repeat": lambda body: change_lists(body, repeat),
    "words": other_words,
    "types": other_types,
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_both_agree_on_what_was_changed(program, tmp_path, mutation):
    changed = {
        f"{name}-{number}": {**value, "body": body}
        for name, value in certificates(*COVERED).items()
        if len(canonical(value)) < 2000
        for number, body in enumerate(MUTATIONS[mutation](value["body"]))
    }
    paths = written(tmp_path, changed)
    assert len(paths) > 60
    assert differences(program, paths) == []


def test_both_agree_which_claims_a_certificate_supports(program, tmp_path):
    values = certificates(*COVERED)
    claims = sorted({value["claim"] for value in certificates(*CHECKS).values()})
    names = [name for name in values if len(canonical(values[name])) < 1500][::2]
    labelled = {f"{n}-{c}": {**values[n], "claim": c} for n in names for c in claims}
    assert differences(program, written(tmp_path, labelled)) == []


def test_a_checker_that_accepts_everything_is_found_out(program, tmp_path):
    careless = tmp_path / "careless"
    careless.write_text('#!/bin/sh\nfor name; do echo "ACCEPT  $name"; done; echo done\n')
    careless.chmod(0o755)
    value = certificates("equality")["S.dp1-K3-P1"]
    value["body"]["heads"] += 1
    paths = written(tmp_path, {"changed": value})
    assert len(differences(careless, paths)) == 1
    assert differences(program, paths) == []


def texts():
    """What is no canonical JSON, by a name."""
    good = (ROOT / "certificates/S.dp1-K3-P1.json").read_text()
    return {
        "empty": "",
        "no newline": good[:-1],
        "two newlines": good + "\n",
        "space": good.replace(":", ": ", 1),
        "minus zero": good.replace(":[0,", ":[-0,", 1),
        "key twice": good.replace("{", '{"body":1,', 1),
        "truncated": good[:300],
        "float": good.replace(":[0,", ":[0.0,", 1),
        "leading zero": good.replace(":[0,", ":[00,", 1),
        "long number": f"{'9' * 4001}\n",
        "deep": "[" * 100_000 + "]" * 100_000 + "\n",
        "too long": f'"{"a" * 500_000}"\n',
        "escape": good.replace("certificate/1", "certificate\\/1"),
        "long escape": good.replace("certificate/1", "\\u0063ertificate/1"),
        "unclosed": '"',
        "no object": "1\n",
    }


def test_what_is_no_canonical_json_is_rejected_by_both(program, tmp_path):
    paths = written(tmp_path, texts())
    (tmp_path / "bytes.json").write_bytes(b"\xff\x00\n")
    status, lines = run(
        program, *paths, tmp_path / "bytes.json", tmp_path / "absent.json", tmp_path
    )
    assert status == 1
    assert [word(line) for line in lines] == ["REJECT"] * (len(paths) + 3)
    assert not any("broke off" in line for line in lines)
    assert not any(check(path.read_bytes()).accepted for path in paths)


def test_one_line_a_file_whatever_its_name(program, tmp_path):
    name = tmp_path / "a\nACCEPT  b"
    status, lines = run(program, name)
    assert (status, len(lines), word(lines[0])) == (1, 1, "REJECT")


def test_exit_status(program):
    covered, other = (str(next(iter(committed_of(kind)))) for kind in ("equality", "rank"))
    assert run(program, covered)[0] == 0
    assert run(program, covered, other)[0] == NOT_COVERED
    for wrong in ([], ["--help"], [covered, "-x"]):
        done = subprocess.run([program, *wrong], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "usage" in done.stderr


def committed_of(kind):
    return [path for path in committed() if json.loads(path.read_text())["kind"] == kind]
