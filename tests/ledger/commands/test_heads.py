import json
import re
import subprocess
import sys

import pytest

import convattn_check

VIT = "--patch-size 16 --in-channels 3 --out-channels 3 --head-dim 64"


def value(document, path):
    for name in path.split("."):
        document = document[name]
    return document


@pytest.mark.parametrize(
    ("words", "numbers", "said"),
    [
        (
            VIT,
            {
                "schema": 1,
                "sizes.head_dim": 64,
                "limit.necessary.count": 12,
                "limit.bounded.count": 20,
                "limit.sufficient.count": 16,
                "limit.bounded_sufficient.count": 20,
                "exact.bounded": None,
                "exact.necessary.count": 24,
                "exact.necessary.claim": "S.headdim",
                "exact.necessary.basis": "proved",
                "exact.necessary.reason": "N_H d_H >= rk_in + rk_out",
            },
            (
                "limit: necessary 12 S.headdim",
                "limit: necessary with bounded value maps 20 S.headdim",
                "limit: sufficient with bounded value maps 20 S.headdim",
                "exact: sufficient 28 S.width",
                "fewer than 16 (limit; nearer: S.width (4), S.overlap) or 28 (exact)",
                "a limit of S.kernel half of its digits (S.price)",
                "All conditions: --json FILE.",
            ),
        ),
        (
            "--kernel-size 5 3 --patch-size 2 1 --dilation 1 2 --attention shared",
            {"sizes.kernel_size": [5, 3], "offsets": 9, "limit.necessary.claim": "S.heads"},
            ("Channels 1 -> 1, heads of any width; for others: --head-dim, --in-channels, --out",),
        ),
        (
            "--sequence --kernel-size 9 --patch-size 2 --in-channels 2",
            {"offsets": 5, "limit.necessary.count": 5},
            ("Channels 2 -> 1, heads of any width; for others: --head-dim, --out-channels.",),
        ),
        (
            "--group p4m --kernel-size 5 --out-channels 2",  # two filters for six orbits
            {"group": "p4m", "rank": 15, "offsets": 25, "limit.necessary.count": 16},
            ("exact: sufficient 16 S.group proved rank F + 1",),
        ),
        (
            "--causal --kernel-size 4 --in-channels 8 --out-channels 8 --head-dim 4 --kv-groups 2 "
            "--heads-per-block 1",
            {
                "sizes.kernel_size": [4],
                "sizes.kv_groups": 2,
                "sizes.causal": True,
                "groups.count": 2,
                "exact.sufficient.claim": "S.gqa",
                "blocks.count": 2,
                "blocks.claim": "S.blocks",
                "blocks.basis": "proved",
                "blocks.reason": "(1 + 1)^2 >= rank F = 4",
            },
            ("value maps: necessary", "Transformer blocks of 1 heads"),
        ),
    ],
)
def test_numbers_and_their_claims(convattn_command, tmp_path, words, numbers, said):
    done = convattn_command("heads", *words.split(), "--json", tmp_path / "heads.json")
    assert done.code == 0
    document = json.loads((tmp_path / "heads.json").read_text())
    assert {path: value(document, path) for path in numbers} == numbers
    out = " ".join(done.out.split())
    assert [words for words in said if words not in out] == []
    assert ("S.price" in out) == (words == VIT)
    assert out.startswith("Channels") == ("--head-dim" not in words)


def test_a_certificate_is_written_after_it_was_checked(convattn_command, tmp_path):
    target, figures = tmp_path / "bound.json", tmp_path / "figures.json"
    words = "--kernel-size 9 --patch-size 2 --in-channels 2"
    done = convattn_command("heads", *words.split(), "--certificate", target, "--json", figures)
    assert done.code == 0
    assert f"ACCEPT  {target}" in done.out
    verdict = convattn_check.check(target.read_bytes())
    assert (verdict.accepted, verdict.claim) == (True, "S.heads")
    assert json.loads(target.read_text())["body"]["heads"] == 18
    document = json.loads(figures.read_text())["certificate"]
    assert (document["accepted"], document["heads"]) == (True, 18)
    assert "by S.heads, for any head dimension" in document["certifies"]
    assert "It certifies 18: the heads that are necessary" in done.out
    assert "S.headdim" not in done.out.split("ACCEPT")[1]


def test_a_certificate_does_not_certify_the_numbers_for_a_head_dimension(
    convattn_command, tmp_path
):
    target = tmp_path / "bound.json"
    done = convattn_command("heads", *VIT.split(), "--certificate", target)
    assert done.code == 0
    assert "It certifies 9" in done.out
    assert "this file does not certify them" in " ".join(done.out.split())
    assert json.loads(target.read_text())["body"]["heads"] == 9


def test_a_rejected_certificate_is_not_written(convattn_command, tmp_path, monkeypatch):
    right = convattn_check.check

    def suspicious(text):
        return right(text.replace('"determinant":', '"determinant":1'))

    monkeypatch.setattr("convattn_check.check", suspicious)
    target = tmp_path / "bound.json"
    done = convattn_command("heads", "--in-channels", 3, "--certificate", target)
    assert done.code == 1
    assert "REJECT" in done.out
    assert not target.exists()


@pytest.mark.slow
def test_models(convattn_command, tmp_path):
    target = tmp_path / "models.json"
    done = convattn_command("heads", "--models", "--json", target)
    assert done.code == 0
    said = " ".join(done.out.split())
    assert "ViT-B/16, DeiT-B 16 12 64 yes 3 12 to 16 20 24 to 28 bounded: no" in said
    assert "by S.width (4) ViT-B/16 and DeiT-B have not enough for K = 3" in said
    rows = json.loads(target.read_text())["rows"]
    assert {row["kernel_size"] for row in rows} == {3, 5, 7}
    base = next(row for row in rows if (row["model"], row["kernel_size"]) == ("ViT-B/16", 3))
    assert (base["enough"], base["limit"]["bounded"]["count"]) == ("bounded: no", 20)
    done = convattn_command("heads", "--models", "--kernel-size", 9, "--json", target)
    assert done.code == 0
    assert {row["kernel_size"] for row in json.loads(target.read_text())["rows"]} == {9}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--kernel-size 0", "--kernel-size 0, but expected an integer ≥ 1"),
        ("--kernel-size 3 3 3", "--kernel-size 3 3 3, but expected"),
        ("--patch-size 2 0", "--patch-size 0, but expected an integer ≥ 1"),
        ("--kernel-size 100000", "--kernel-size 100000, but expected at most 4096"),
        ("--out-channels 1000001", "--out-channels 1000001, but expected at most 1000000"),
        ("--kernel-size 999 --patch-size 100 --dilation 99", "--dilation 99 99 with"),
        ("--attention shared --certificate c.json", "leave out --attention shared"),
        ("--group p4 --certificate c.json", "leave out --attention shared and --group"),
        ("--group p4 --patch-size 2", "--group 'p4' with kernel_size"),
        ("--sequence --kernel-size 3 3", "--sequence takes one --kernel-size, but got 3 3"),
        ("--sequence --kernel-size 3 --patch-size 2 2", "--patch-size 2 2, but expected"),
        ("--models --head-dim 64", "--models takes sizes from the models"),
        ("--models --kernel-size 0", "--kernel-size 0, but"),
        ("--models --json /nowhere/x.json", "--json got /nowhere/x.json"),
        ("--json /nowhere/x.json", "--json got /nowhere/x.json"),
        ("--certificate /nowhere/x.json", "--certificate got /nowhere/x.json"),
        ("--certificate c.json --json c.json", "one would overwrite the other"),
        ("--kernel-size 4 --certificate c.json", "should be odd"),
        ("--kernel-size 3 5 --certificate c.json", "alike on all axes"),
        ("--dilation 2 --certificate c.json", "without dilation"),
        ("--kernel-size 31 --in-channels 500 --certificate c.json", "take a smaller kernel"),
        ("--causal --kernel-size 3 5", "--causal takes one --kernel-size, but got 3 5"),
        ("--heads-per-block 0", "--heads-per-block 0, but expected"),
        ("--group p4m --heads-per-block 2", "--heads-per-block counts blocks"),
        ("--kv-groups 1 --head-dim 1 --in-channels 2", "take kv_groups=2 or more"),
    ],
)
def test_wrong_use_exits_2_with_one_line(convattn_command, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    done = convattn_command("heads", *words.split())
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert line.startswith("convattn heads: ")
    assert message in line
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_the_closed_forms_start_no_jax():
    """Neither does the computed case with the most columns."""
    code = (
        "import sys; from convattn.cli.__main__ import main; "
        "main('heads --kernel-size 31 --patch-size 2 --in-channels 30 --head-dim 4'.split()); "
        "print('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_a_narrow_terminal_loses_no_column(convattn_command, monkeypatch):
    monkeypatch.setattr("convattn.cli.output.PLAIN_WIDTH", 40)
    out = convattn_command("heads", "--kernel-size", "3").out
    assert re.search(r"heads +claim +basis +why", out)
    assert "…" not in out
    assert re.search(r"exact: sufficient +2 +S.kernel +proved +rank F [+] 1", out)
