"""`convattn accelerator` on a CPU: all stages, and a second session that goes on."""

import json

import pytest

STAGES = ["audit", "checks", "bench", "rates", "hours", "training"]


@pytest.mark.slow
def test_four_minutes_reach_every_stage_and_the_next_go_on(convattn_command, tmp_path):
    """In three the audit has 15 seconds, and took 12 on two quiet cores."""
    folder = tmp_path / "session"
    done = convattn_command("accelerator", "--minutes", 4, "-o", folder)
    assert done.code == 0, done.out
    result = json.loads((folder / "session.json").read_text())["stages"]
    assert list(result) == STAGES
    assert all(result[name]["status"] in ("done", "stopped") for name in STAGES), result
    assert result["audit"]["status"] == "done"
    assert b"Every back end against float64" in (folder / "index.html").read_bytes()
    again = convattn_command("accelerator", "--minutes", 1, "-o", folder)
    assert again.code == 0
    assert "audit: done before" in again.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--minutes", "0.5"), "--minutes 0.5"),
        (("--minutes", "nan"), "--minutes nan"),
        (("--data", "nowhere"), "--data nowhere"),
    ],
)
def test_wrong_use_is_refused(convattn_command, tmp_path, words, message):
    done = convattn_command("accelerator", "-o", tmp_path / "session", *words)
    assert (done.code, message in done.err) == (2, True)
    assert not (tmp_path / "session").exists()
    (tmp_path / "file").write_text("")
    done = convattn_command("accelerator", "-o", tmp_path / "file")
    assert (done.code, "is a file" in done.err) == (2, True)
