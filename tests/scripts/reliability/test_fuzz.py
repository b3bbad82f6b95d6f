"""fuzz.py notices what no reader may do, and makes what it has found smaller."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FINDINGS = {
    "whole": "nothing",
    "refused": "nothing",
    "exception": "KeyError",
    "hang": "more than 0.5 s",
    "memory": "MemoryError",
    "hidden memory": "ValueError",
    "written": "open",
    "renamed": "os.rename",
    "process": "subprocess.Popen",
    "printed": "printed Traceback",
    "message": "a message of 0 characters",
    "long message": "a message of 10000 characters",
    "left": "left half",
}
SEARCH = """
import sys
sys.path[:0] = [{here!r}, {scripts!r}]
import importlib.util
spec = importlib.util.spec_from_file_location("script", {scripts!r} + "/fuzz.py")
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)
from planted_readers import READERS
sys.exit(script.main(READERS))
"""


def test_every_planted_fault_is_noticed() -> None:
    command = [sys.executable, str(HERE / "planted_readers.py"), *FINDINGS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert not done.stderr
    *lines, last_line = done.stdout.splitlines()
    assert last_line == "outside: False"
    for (word, finding), line in zip(FINDINGS.items(), lines, strict=True):
        assert line.startswith(f"{word}: {finding}"), line


@pytest.mark.slow
def test_what_is_found_is_made_smaller_and_kept(tmp_path) -> None:
    script = tmp_path / "search.py"
    scripts = HERE.parents[2] / "scripts" / "reliability"
    script.write_text(SEARCH.format(here=str(HERE), scripts=str(scripts)))
    command = [sys.executable, str(script), "sign", f"--keep={tmp_path}"]
    done = subprocess.run([*command, "--inputs=2000"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "KeyError" in done.stderr
    assert "sign: 2,000 inputs of seed 0: exit code 1" in done.stdout
    assert (tmp_path / "sign").read_bytes() == b"\xffwhole"
    words = ["--files", str(tmp_path / "sign")]
    assert subprocess.run([*command, *words], capture_output=True, timeout=300).returncode == 1
