"""What is drawn is changed, and mostly keeps its structure."""

import bz2
import io
import zipfile

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from fuzz.array_readers import npy_seeds, npz_seeds, safetensors_seeds
from fuzz.damage import STRUCTURES, damaged
from fuzz.image_readers import tar_of
from fuzz.reader import ROOT

SEEDS = {
    "change_json": lambda: b'{"a": [1, {"b": "c"}], "d": null}',
    "change_npy": lambda: npy_seeds()[0],
    "change_safetensors": lambda: safetensors_seeds()[0],
    "change_zip": lambda: npz_seeds()[0],
    "change_tar": lambda: tar_of({"train/a/1.png": b"text" * 100}),
    "change_packed": lambda: bz2.compress(b"text" * 100),
}


def drawn(seeds: list[bytes], folder: bool = False) -> list[bytes]:
    """A hundred inputs, the same in every run."""
    contents = []

    @settings(
        max_examples=100,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(damaged(seeds, folder))
    def collect(content):
        contents.append(content)

    collect()
    return contents


@pytest.mark.quick(1)
@pytest.mark.parametrize(("sees", "how"), STRUCTURES, ids=[how.__name__ for _, how in STRUCTURES])
def test_a_structure_is_changed_and_mostly_kept(sees, how) -> None:
    """A change that only ever broke the structure would never come past its first check."""
    seed = SEEDS[how.__name__]()
    assert sees(seed)
    contents = drawn([seed])
    assert sum(each != seed for each in contents) > 60
    assert sum(map(sees, contents)) > 40


@pytest.mark.slow
def test_an_archive_that_stands_for_a_folder_stays_whole() -> None:
    for content in drawn([npz_seeds()[0]], folder=True):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            assert archive.testzip() is None


def test_certificates_are_sealed_again() -> None:
    """Else every change would end at the digests, and no other certificate would be accepted."""
    from convattn_check import check

    content = (ROOT / "certificates" / "C20.rank-h1-o3.json").read_bytes()
    verdicts = [check(each) for each in drawn([content]) if each != content]
    assert sum(verdict.code in ("stale", "digest") for verdict in verdicts) < 30
    assert any(verdict.accepted for verdict in verdicts)
