"""fuzz.py notices what no reader may do, and makes every input again from its name."""

import bz2
import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from random import Random

import pytest
from fuzz.array_readers import npy_seeds, npz_seeds, safetensors_seeds
from fuzz.image_readers import picture, tar_of

ROOT = Path(__file__).parents[3]
PLANTED = Path(__file__).with_name("planted_readers.py")
KINDS = {
    **dict.fromkeys(("exception", "hang", "memory", "end", "written", "executed"), None),
    **dict.fromkeys(("printed", "message", "left"), None),
    **{"hidden memory": "memory", "renamed": "written", "process": "executed"},
    **{"module": "executed", "long message": "message", "waits": "hang"},
}


def fuzz(*words: str, outside: Path | None = None) -> tuple[int, str]:
    """The exit code of a run over the planted readers, and what it printed."""
    program = "scripts/reliability/fuzz.py"
    command = [sys.executable, program, *words, f"--table={PLANTED}", "--seconds=0.5"]
    environment = {**os.environ, "FUZZ_OUTSIDE": str(outside or "/nowhere")}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.mark.slow
def test_every_planted_fault_is_noticed(tmp_path) -> None:
    paths = {word: tmp_path / word.replace(" ", "-") for word in ("whole", *KINDS, "refused")}
    for word, path in paths.items():
        path.write_bytes(word.encode())
    outside = tmp_path / "outside"
    code, printed = fuzz("word", "--files", *map(str, paths.values()), outside=outside)
    found = dict(re.findall(r"^(\w+)  (\S+)$", printed, re.MULTILINE)[::-1])
    seen = {Path(path).name: kind for kind, path in re.findall(r"^(\w+)  (/\S+)$", printed, re.M)}
    assert code == 1
    assert found
    expected = {paths[word].name: kind or word for word, kind in KINDS.items()}
    assert seen == expected
    assert not outside.exists()


def test_what_is_refused_or_taken_is_no_finding(tmp_path) -> None:
    paths = [tmp_path / name for name in ("whole", "refused")]
    for path in paths:
        path.write_bytes(path.name.encode())
    code, printed = fuzz("word", "--files", *map(str, paths))
    assert code == 0
    assert "2 files read, 0 findings" in printed


@pytest.mark.slow
def test_an_input_is_made_again_from_its_name_and_made_smaller(tmp_path) -> None:
    keep = f"--keep={tmp_path}"
    code, printed = fuzz("sign", "--inputs=300", "--seed=3", keep)
    assert code == 1
    (name, path), *_ = re.findall(r"^exception  (\S+)  (\S+)$", printed, re.MULTILINE)
    content = Path(path).read_bytes()
    assert b"\xff" in content
    assert fuzz("sign", f"--again={name}", keep)[0] == 1
    again = tmp_path / "sign" / name.replace(":", "-")
    assert again.read_bytes() == content
    assert fuzz("sign", "--files", str(again), "--shrink")[0] == 1
    assert again.read_bytes() == b"\xff"
    assert (
        fuzz("sign", "--inputs=300", "--seed=3", keep)[1].splitlines()[0]
        == (printed.splitlines()[0])
    )


@pytest.fixture
def mutations(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "reliability"))
    import fuzz_mutations

    return fuzz_mutations


def seeds() -> dict[str, bytes]:
    """One content of each structure."""
    image = picture("RGB", "PNG")
    return {
        "change_json": b'{"a": [1, {"b": "c"}], "d": null}',
        "change_lines": b'{"step": 1}\n{"step": 2}\n',
        "change_npy": npy_seeds()[0],
        "change_safetensors": safetensors_seeds()[0],
        "change_zip": npz_seeds()[0],
        "change_tar": tar_of({"train/a/1.png": image}),
        "change_packed": bz2.compress(b"text" * 100),
        "change_png": image,
        "change_request": b"GET /a?b=1 HTTP/1.1\r\nHost: x\r\n\r\n",
    }


def test_every_structure_is_changed_and_mostly_kept(mutations) -> None:
    """A mutation that only ever broke the structure would never come past its first check."""
    held = seeds()
    assert held.keys() == {how.__name__ for _, how in mutations.STRUCTURES}
    for sees, how in mutations.STRUCTURES:
        content = held[how.__name__]
        assert sees(content), how
        made = [how(content, [content], Random(number)) for number in range(60)]
        assert sum(each != content for each in made) > 30, how
        assert sum(map(sees, made)) > 20, how
    whole = held["change_zip"]
    made = [mutations.change_zip(whole, [], Random(number)) for number in range(100)]
    assert sum(map(is_whole_archive, made)) > 40
    assert not is_whole_archive(made[0][:-30])  # planted


def is_whole_archive(content: bytes) -> bool:
    """Whether all checksums of a ZIP archive fit."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.testzip() is None
    except Exception:  # whatever a damaged directory makes of zipfile
        return False


def test_certificates_are_sealed_again(mutations) -> None:
    """Else every mutation would end at the digests."""
    from convattn_check import check

    content = (ROOT / "certificates" / "C20.rank-h1-o3.json").read_bytes()
    codes = [
        check(mutations.change_json(content, [], Random(number))).code for number in range(100)
    ]
    assert len(set(codes) - {"stale", "digest"}) > 5
    assert sum(code in ("stale", "digest") for code in codes) < 30
