import json
import re
import subprocess
import sys

import pytest

import convattn_check


def test_heads_prints_the_numbers_and_their_claims(convattn_command, tmp_path):
    target = tmp_path / "heads.json"
    words = "--kernel-size 3 --patch-size 16 --in-channels 3 --out-channels 3 --head-dim 64"
    done = convattn_command("heads", *words.split(), "--json", target)
    assert done.code == 0
    assert "Channels" not in done.out
    lines = {line.split("  ")[0].strip(): line for line in done.out.splitlines()}
    assert "12  S.headdim" in lines["limit: necessary"]
    assert "20  S.headdim" in lines["limit: necessary with bounded value maps"]
    assert "20  S.headdim" in lines["limit: sufficient with bounded value maps"]
    assert "28  S.width" in lines["exact: sufficient"]
    said = "nearer: S.width (4), S.overlap"
    assert f"Open: whether fewer than 16 (limit; {said}) or 28 (exact)" in done.out
    assert "All conditions: --json FILE." in done.out
    after = done.out[done.out.index("coordinates share the heads") :].splitlines()[1:]
    assert 1 <= len(after) <= 4
    document = json.loads(target.read_text())
    assert document["schema"] == 1
    assert document["sizes"]["head_dim"] == 64
    assert document["limit"]["necessary"]["count"] == 12
    assert document["limit"]["bounded"]["count"] == 20
    assert document["exact"]["bounded"] is None
    assert document["limit"]["sufficient"]["count"] == 16
    assert document["limit"]["bounded_sufficient"]["count"] == 20
    assert document["exact"]["necessary"] == {
        "count": 24,
        "claim": "S.headdim",
        "basis": "proved",
        "reason": "N_H d_H >= rk_in + rk_out",
    }


def test_what_was_left_out_is_said_first(convattn_command):
    done = convattn_command("heads", "--patch-size", "16", "--in-channels", "3")
    assert done.out.startswith(
        "Channels 3 -> 1, heads of any width; for others: --head-dim, --out-channels."
    )


def test_options_reach_the_library(convattn_command, tmp_path):
    target = tmp_path / "heads.json"
    words = "--kernel-size 5 3 --patch-size 2 1 --dilation 1 2 --attention shared"
    assert convattn_command("heads", *words.split(), "--json", target).code == 0
    document = json.loads(target.read_text())
    assert document["sizes"]["kernel_size"] == [5, 3]
    assert document["offsets"] == 9
    assert document["limit"]["necessary"]["claim"] == "S.heads"
    words = "--sequence --kernel-size 9 --patch-size 2 --in-channels 2"
    assert convattn_command("heads", *words.split(), "--json", target).code == 0
    document = json.loads(target.read_text())
    assert (document["offsets"], document["limit"]["necessary"]["count"]) == (5, 5)


def test_a_group_is_counted_and_said(convattn_command, tmp_path):
    target = tmp_path / "heads.json"
    words = "--group p4m --kernel-size 5 --out-channels 2"
    done = convattn_command("heads", *words.split(), "--json", target)
    assert done.code == 0
    assert re.search(r"exact: sufficient +16 +S.group +proved +rank F [+] 1", done.out)
    document = json.loads(target.read_text())
    assert (document["group"], document["rank"], document["offsets"]) == ("p4m", 15, 25)
    assert document["limit"]["necessary"]["count"] == 16  # two filters for six orbits


def test_a_limit_of_shared_places_names_its_price(convattn_command):
    words = "--patch-size 16 --in-channels 3 --out-channels 3 --head-dim"
    assert "a limit of S.kernel half of its digits (S.price)" in (
        convattn_command("heads", *words.split(), 64).out
    )
    assert "S.price" not in convattn_command("heads").out


def test_a_certificate_is_written_after_it_was_checked(convattn_command, tmp_path):
    target, figures = tmp_path / "bound.json", tmp_path / "figures.json"
    words = "--kernel-size 9 --patch-size 2 --in-channels 2"
    done = convattn_command("heads", *words.split(), "--certificate", target, "--json", figures)
    assert done.code == 0
    assert f"ACCEPT  {target}" in done.out
    verdict = convattn_check.check(target.read_bytes())
    assert verdict.accepted
    assert verdict.claim == "S.heads"
    assert json.loads(target.read_text())["body"]["heads"] == 18
    document = json.loads(figures.read_text())["certificate"]
    assert document["accepted"]
    assert document["heads"] == 18
    assert "by S.heads, for any head dimension" in document["certifies"]
    assert "It certifies 18: the heads that are necessary" in done.out
    assert "S.headdim" not in done.out.split("ACCEPT")[1]


def test_a_certificate_does_not_certify_the_numbers_for_a_head_dimension(
    convattn_command, tmp_path
):
    target = tmp_path / "bound.json"
    words = "--patch-size 16 --in-channels 3 --out-channels 3 --head-dim 64 --certificate"
    done = convattn_command("heads", *words.split(), target)
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


def test_models(convattn_command, tmp_path):
    target = tmp_path / "models.json"
    done = convattn_command("heads", "--models", "--json", target)
    assert done.code == 0
    row = next(line for line in done.out.splitlines() if line.startswith("ViT-B/16"))
    assert (
        " ".join(row.split()) == "ViT-B/16, DeiT-B 16 12 64 yes 3 12 to 16 20 24 to 28 bounded: no"
    )
    assert "by S.width (4) ViT-B/16 and DeiT-B have not enough for K = 3" in " ".join(
        done.out.split()
    )
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
        ("--in-channels 0", "--in-channels 0, but expected an integer ≥ 1"),
        ("--head-dim 0", "--head-dim 0, but expected an integer ≥ 1"),
        ("--kernel-size 99999999999999999999", "--kernel-size 99999999999999999999, but expected"),
        ("--kernel-size 100000", "--kernel-size 100000, but expected at most 4096"),
        ("--sequence --kernel-size 30000000", "--kernel-size 30000000, but expected at most 4096"),
        ("--patch-size 1000000", "--patch-size 1000000, but expected at most 4096"),
        ("--out-channels 1000001", "--out-channels 1000001, but expected at most 1000000"),
        ("--kernel-size 999 --patch-size 100 --dilation 99", "--dilation 99 99 with"),
        ("--attention shared --certificate c.json", "leave out --attention shared"),
        ("--group p4 --certificate c.json", "leave out --attention shared and --group"),
        ("--group p4 --patch-size 2", "--group 'p4' with kernel_size"),
        ("--sequence --kernel-size 3 3", "--sequence takes one --kernel-size, but got 3 3"),
        ("--sequence --kernel-size 3 --patch-size 2 2", "--patch-size 2 2, but expected"),
        ("--models --head-dim 64", "--models takes sizes from the models"),
        ("--models --certificate c.json", "--models takes sizes from the models"),
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


def test_the_closed_forms_start_no_jax():
    """Neither does the computed case with the most columns."""
    code = (
        "import sys; from convattn.cli.__main__ import main; "
        "main('heads --kernel-size 31 --patch-size 2 --in-channels 30 --head-dim 4'.split()); "
        "print('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_groups_masks_and_blocks(convattn_command, tmp_path):
    target = tmp_path / "heads.json"
    words = "--causal --kernel-size 4 --in-channels 8 --out-channels 8 --head-dim 4 --kv-groups 2"
    done = convattn_command("heads", *words.split(), "--heads-per-block", 1, "--json", target)
    assert done.code == 0
    assert "value maps: necessary" in done.out
    assert "Transformer blocks of 1 heads" in done.out
    document = json.loads(target.read_text())
    assert document["sizes"]["kernel_size"] == [4]
    assert (document["sizes"]["kv_groups"], document["sizes"]["causal"]) == (2, True)
    assert document["groups"]["count"] == 2
    assert document["exact"]["sufficient"]["claim"] == "S.gqa"
    assert document["blocks"] == {
        "count": 2,
        "claim": "S.blocks",
        "basis": "proved",
        "reason": "(1 + 1)^2 >= rank F = 4",
    }


def test_a_narrow_terminal_loses_no_column(convattn_command, monkeypatch):
    monkeypatch.setattr("convattn.cli.output.PLAIN_WIDTH", 40)
    out = convattn_command("heads", "--kernel-size", "3").out
    assert re.search(r"heads +claim +basis +why", out)
    assert "…" not in out
    assert re.search(r"exact: sufficient +2 +S.kernel +proved +rank F [+] 1", out)
