"""What fuzzing has found stays mended: each file is read again."""

from pathlib import Path

import pytest

from fuzz.readers import READERS
from fuzz.watch import require_documented

FOUND = Path(__file__).with_name("found")
FILES = sorted(path for path in FOUND.rglob("*") if path.is_file())


@pytest.mark.quick(15)
@pytest.mark.parametrize("path", FILES, ids=[f"{p.parent.name}-{p.name}" for p in FILES])
def test_what_was_found_is_taken_or_refused(path, tmp_path, capfd) -> None:
    reader, problem = READERS[path.parent.name], None
    try:
        reader.call(path.read_bytes(), tmp_path)
    except Exception as raised:
        problem = raised
    left = [each.name for each in tmp_path.iterdir()]
    require_documented(reader, problem, left, capfd.readouterr().err)


def test_every_reader_takes_its_seeds(tmp_path) -> None:
    """The quick ones; else fuzzing would try nothing but what is refused at once."""
    for name in ("npy", "npz", "safetensors", "picture", "archive", "folder", "settings"):
        reader = READERS[name]
        for number, content in enumerate(reader.seeds):
            folder = tmp_path / f"{name}-{number}"
            folder.mkdir()
            try:
                reader.call(content, folder)
            except reader.refusals:
                continue
            break
        else:
            raise AssertionError(f"{name} refuses all its seeds")
