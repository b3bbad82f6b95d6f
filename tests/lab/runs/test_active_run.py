"""The commit that a run was made at."""

import subprocess

from convattn_lab.runs.active_run import git_state


def git(folder, *words) -> str:
    author = ["-c", "user.name=n", "-c", "user.email=e@f"]
    done = subprocess.run(
        ["git", *author, "-C", str(folder), *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_commit_and_changes(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_state(tmp_path) is None
    git(tmp_path, "init", "-q")
    assert git_state(tmp_path) is None  # nothing is committed
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-qm", "one")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "untracked").write_text("does not count")
    assert git_state(tmp_path) == {"commit": commit, "changed": False}
    (tmp_path / "file").write_text("two")
    assert git_state(tmp_path) == {"commit": commit, "changed": True}


def test_without_git_nothing_is_known(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(tmp_path) is None
