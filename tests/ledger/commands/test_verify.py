import json
import os
import subprocess
import sys

import pytest
from ledger.proof_files import claim, evidence, write

import convattn
from convattn.cli.running import UsageError
from convattn_ledger.journal import Journal
from convattn_ledger.locations import coq_directory


def test_verify_passes_and_prints_the_table_and_the_details(convattn_command, proofs):
    done = convattn_command("verify", "--proofs", proofs)
    assert done.code == 0
    assert "2 claims, verdicts: 2 hold; evidence: 3 passed, 0 failed, 0 not run here" in done.out
    assert "assumes: Coq" in done.out
    assert "passes" in done.err
    assert "\x1b" not in done.out + done.err


@pytest.mark.slow
def test_verify_runs_with_jax_in_a_process_of_its_own(proofs, tmp_path):
    text = "str(__import__('jax.numpy').numpy.zeros(1).dtype)"
    write(proofs, s__c=claim("S.dtype", evidence(text)))
    target = tmp_path / "results.json"
    words = ["verify", "--proofs", proofs, "--claim", "S.dtype", "--json", target]
    done = subprocess.run([sys.executable, "-m", "convattn.cli", *map(str, words)], check=False)
    document = json.loads(target.read_text())
    assert done.returncode == 0
    assert document["claims"][0]["evidence"][0]["detail"] == "float64"
    environment = document["environment"]
    assert environment["x64"] is True
    assert {*environment} >= {"backend", "device", "default_matmul_precision"}


@pytest.mark.slow
def test_verify_json(convattn_command, proofs, tmp_path):
    absent = evidence("absent('no accelerator')", name="device")
    write(proofs, s__c=claim("S.device", evidence(), absent), s__d="1/0")
    target = tmp_path / "results.json"
    options = ("--seed", 5, "--jobs", 1, "--timeout", 60)
    done = convattn_command("verify", "--proofs", proofs, "--json", target, *options)
    assert done.code == 1
    document = json.loads(target.read_text("utf-8"))
    assert document["schema"] == 1
    environment = document["environment"]
    assert set(environment) >= {"python", "jax", "jaxlib", "numpy", "flint", "cores"}
    assert environment["convattn"] == convattn.__version__
    assert (environment["seed"], environment["quick"]) == (5, False)
    assert (environment["options"]["jobs"], environment["options"]["timeout"]) == (1, 60)
    lemma, device, _, broken = document["claims"]
    said = [lemma[name] for name in ("id", "source", "verdict")]
    assert said == ["C20.lemma1", "A source, §1", "holds"]
    seconds = [item.pop("seconds") for item in lemma["evidence"]]
    assert lemma["seconds"] == pytest.approx(sum(seconds))
    names = ("name", "level", "passed", "detail", "assumes", "covers")
    assert [{*item} for item in lemma["evidence"]] == [{*names}] * 2
    assert [tuple(item[name] for name in names) for item in lemma["evidence"]] == [
        ("e", "TESTED", True, "1 = 1", "", ""),
        ("coq", "PROVED", True, "for all n", "Coq", ""),
    ]
    assert [(item["passed"], item["detail"]) for item in device["evidence"]] == [
        (True, "1 = 1"),
        (None, "no accelerator"),
    ]
    assert device["problems"] == []
    assert (broken["id"], broken["verdict"], broken["evidence"]) == ("s/d.py", None, [])
    assert "ZeroDivisionError" in broken["problems"][0]


def test_what_passed_is_taken_over_under_the_same_options_and_coq_sources_alone(
    convattn_command, proofs, monkeypatch
):
    """The sources are those of the checkout, which PROVED is of, also where --proofs is another."""
    journals = []

    def recorded(folders, settings):
        assert coq_directory() in folders
        journals.append(settings)
        raise UsageError("its journal is all that is asked for")

    monkeypatch.setattr(Journal, "of", recorded)
    for options in ((), ("--seed", 1), ("--quick",), ("--timeout", 60), ("--jobs", 2)):
        convattn_command("verify", "--proofs", proofs, *options)
    assert len({*journals[:4]}) == 4
    assert journals[4] == journals[0]


@pytest.mark.parametrize("where", ["==", "!="])
@pytest.mark.quick(1)
def test_a_file_that_changes_meanwhile_is_named_once(convattn_command, proofs, monkeypatch, where):
    """Also one that changed only between its loading in this process and in the workers."""
    records = []
    monkeypatch.setattr(Journal, "remove", lambda journal: records.append(journal.read()))
    write(
        proofs,
        s__b=claim("S.finite", top=f"if os.getpid() {where} {os.getpid()}: os.utime(__file__)"),
    )
    done = convattn_command("verify", "--proofs", proofs, "--jobs", 1)
    assert done.code == 0
    assert records == [{}]
    (line,) = (line for line in done.err.splitlines() if "meanwhile" in line)
    assert line.startswith(f"convattn verify: {proofs / 's' / 'b.py'} changed meanwhile")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "messages"),
    [
        ("fail('off by 0.5')", ("off by 0.5", "The evidence for 1 of 3 claims fails.")),
        (
            "absent('no accelerator')",
            (
                "none of its evidence was run",
                "\nLevels not run here, or not in full, of 1 of 3 claims: ",
            ),
        ),
    ],
)
def test_verify_fails_if_one_file_does(convattn_command, proofs, check, messages):
    """All ways in which a check or a file may fail: test_runner.py and test_discovery.py."""
    write(proofs, s__x=claim("S.x", evidence(check)))
    done = convattn_command("verify", "--proofs", proofs)
    assert done.code == 1
    assert "Nothing failed" not in done.out
    for message in messages:
        assert message in done.out


def test_quick_runs_quick_evidence_and_does_not_ask_for_every_level(convattn_command, tmp_path):
    slow = evidence("fail('slow')", level="BOUNDED", name="slow", quick=False)
    quick = evidence("str(run.quick)", level="ENCLOSED", name="quick")
    write(tmp_path, p__a=claim("S.a", quick, slow, kinds="Kind.LIMIT"))
    assert convattn_command("verify", "--proofs", tmp_path, "--quick").code == 0
    assert convattn_command("verify", "--proofs", tmp_path).code == 1
    write(tmp_path, p__b=claim("S.b", evidence(quick=False)))
    done = convattn_command("verify", "--proofs", tmp_path, "--quick")
    assert done.code == 1
    assert "no evidence is marked quick" in done.out


@pytest.mark.slow
def test_claims_and_levels_are_chosen(convattn_command, proofs, tmp_path):
    target = tmp_path / "j.json"
    write(proofs, s__x="1/0")
    words = ("verify", "--proofs", proofs, "--json", target)
    done = convattn_command(*words, "--claim", "C20.*", "--claim", "S.finite", "--level", "proved")
    assert done.code == 0
    assert "could not be loaded: s/x.py" in done.err
    document = json.loads(target.read_text())
    assert [item["id"] for item in document["claims"]] == ["C20.lemma1"]
    assert [item["level"] for item in document["claims"][0]["evidence"]] == ["PROVED"]
    assert document["environment"]["options"]["levels"] == ["PROVED"]
    assert document["environment"]["options"]["left_out"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--claim", "C20.lema1"], "no claim matches 'C20.lema1'; closest ids: C20.lemma1"),
        (["--level", "PROVEN"], "--level got 'PROVEN', but expected one of PROVED, CERTIFIED"),
        (["--jobs", "0"], "--jobs got 0, but expected at least 1"),
        (["--timeout", "0"], "--timeout got 0.0, but expected a positive number"),
        (["--timeout", "nan"], "--timeout got nan, but expected a positive number"),
        (["--certificates", "/nowhere"], "--certificates got /nowhere, which is not a directory"),
        (["--json", "/nowhere/j.json"], "--json got /nowhere/j.json, but the directory /nowhere"),
        (["--json", "/"], "which is a directory"),
        (["--proofs", "/nowhere"], "--proofs got /nowhere, which is not a directory"),
        (["--report", "/dev/null"], "is a file"),
    ],
)
def test_wrong_use_of_verify_exits_2_with_one_line(
    convattn_command, proofs, monkeypatch, words, message
):
    monkeypatch.setattr("convattn_ledger.report.SECONDS_BEFORE_COUNTS", 600)  # on a busy machine
    done = convattn_command("verify", "--proofs", proofs, *words)
    assert done.code == 2
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("convattn verify: ")
    assert message in line


def test_a_directory_without_proofs_exits_2(convattn_command, tmp_path):
    done = convattn_command("verify", "--proofs", tmp_path)
    assert done.code == 2
    assert "it has no proof files" in done.err


@pytest.mark.slow
def test_verify_report(convattn_command, proofs, tmp_path):
    write(proofs, s__c=claim("S.wrong", evidence("require(False, '1 < 0')")), s__d="1/0")
    folder = tmp_path / "new" / "report"
    done = convattn_command("verify", "--proofs", proofs, "--jobs", 1, "--report", folder)
    assert done.code == 1
    assert f"the report: {folder / 'index.html'}" in done.out
    assert [path.name for path in folder.iterdir()] == ["index.html"]
    text = (folder / "index.html").read_text("utf-8")
    for part in ('data-id="C20.lemma1"', "The evidence fails for S.wrong, s/d.py.", "1 &lt; 0"):
        assert part in text
