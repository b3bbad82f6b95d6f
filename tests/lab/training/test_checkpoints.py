"""A checkpoint gives back the bits that were saved, or is passed over."""

import errno
import json
import os
import shutil
import warnings
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from full_files import full_files
from lab.training.tiny import Dense, Normalized, assert_same_arrays, settings

from convattn_lab.training import checkpoints
from convattn_lab.training.checkpoints import (
    CheckpointStore,
    DamagedCheckpoint,
    OtherModel,
    digest,
    read_checkpoint,
)
from convattn_lab.training.failures import CheckpointNotWritten, NoWholeCheckpoint
from convattn_lab.training.optimizer import make_optimizer
from convattn_lab.training.state import initial_state, named_arrays

# Orbax's event loop may be closed before a reader that failed tells it so.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def state(step=0, seed=0, model=Normalized, **changes):
    """A state that differs in every number from that of another step."""
    fresh = initial_state(model(seed), make_optimizer(settings(**changes), 12), seed)[1]
    return jax.tree.map(lambda leaf: leaf + jnp.asarray(step, leaf.dtype), fresh)


def save(store, saved_state, **record):
    arrays = named_arrays(saved_state)
    store.save(int(arrays["step"]), arrays, record)


def assert_same(actual, expected):
    one, other = named_arrays(actual), named_arrays(expected)
    assert_same_arrays(one, other)
    assert digest(one) == digest(other)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with the checkpoints of steps 3 and 7; not to be changed."""
    folder = tmp_path_factory.mktemp("saved") / "checkpoints"
    store = CheckpointStore(folder, 2)
    for step in (3, 7):
        save(store, state(step), seconds=step / 3, best=0.1)
    store.close()
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "checkpoints")


def change_record(folder, step=7, text="{"):
    (folder / str(step) / "record" / "metadata").write_text(text)


@pytest.mark.slow
def test_every_bit_and_the_record_come_back(saved):
    restored = CheckpointStore(saved).restore_newest(state(), set_aside=False)
    assert (restored.step, restored.record["seconds"]) == (7, 7 / 3)
    assert_same(restored.state, state(7))


def test_none_yet(tmp_path):
    store = CheckpointStore(tmp_path / "none")
    assert store.restore_newest(state()) is None
    assert store.steps() == []
    assert not (tmp_path / "none").exists()


DAMAGES = {
    "halved": lambda content, bit: content[: len(content) // 2],
    "emptied": lambda content, bit: b"",
    "flipped": lambda content, bit: (
        content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :]
    ),
    "deleted": lambda content, bit: None,
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", DAMAGES)
def test_any_damage_to_any_file_is_harmless_or_noticed(folder, kind):
    """Right bits, or a warning and those of the checkpoint before: never anything else; a reader
    sets nothing aside."""
    like, digests = state(), {step: digest(named_arrays(state(step))) for step in (3, 7)}
    files = sorted(path for path in (folder / "7").rglob("*") if path.is_file())
    assert len(files) > 8
    rng, passed_over = np.random.default_rng(0), set()
    for path in files:
        original = path.read_bytes()
        content = DAMAGES[kind](original, int(rng.integers(0, 8 * len(original))))
        path.unlink() if content is None else path.write_bytes(content)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            restored = CheckpointStore(folder).restore_newest(like, set_aside=False)
        path.write_bytes(original)
        messages = [
            str(warning.message) for warning in caught if warning.category is DamagedCheckpoint
        ]
        assert digest(named_arrays(restored.state)) == digests[restored.step], path
        assert restored.record["seconds"] == restored.step / 3, path
        assert bool(messages) == (restored.step == 3), path
        if messages:
            assert "step 7" in messages[0], path
            passed_over.add(path.relative_to(folder / "7").parts[0])
    assert passed_over >= {"arrays", "record"}


def exchange_arrays(folder, _):
    """All files are undamaged, but of another checkpoint: only the digest differs."""
    shutil.rmtree(folder / "7" / "arrays")
    shutil.copytree(folder / "3" / "arrays", folder / "7" / "arrays")


def change_best(folder, _):
    record = json.loads((folder / "7" / "record" / "metadata").read_text())
    change_record(folder, text=json.dumps({**record, "best": 0.9}))


def unpack_little(_, monkeypatch):
    monkeypatch.setattr(checkpoints, "most_unpacked", lambda size: 10)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (exchange_arrays, "SHA-256 of its arrays"),
        (change_best, "record was changed"),
        (unpack_little, r"arrays are said to have [\d,]+ bytes"),
    ],
)
def test_what_only_a_check_can_tell_is_refused(folder, monkeypatch, damage, message):
    damage(folder, monkeypatch)
    with pytest.raises(ValueError, match=message):
        read_checkpoint(folder / "7", state())


def test_arrays_of_another_name_shape_or_type_have_another_layout():
    """Float32, int32 and uint32 zeros have the same bytes: only their layout differs."""
    arrays = [
        *({name: np.zeros(2, np.float32)} for name in "ab"),
        {"a": np.zeros((2, 1), np.float32)},
        *({"a": np.zeros(2, kind)} for kind in (np.int32, np.uint32)),
    ]
    for identity in (checkpoints.layout, digest):
        assert len({identity(variant) for variant in arrays}) == len(arrays)


def test_folders_that_are_no_steps_are_left_alone(folder):
    for name in ("²", "007", "1e3", "9" * 30):
        (folder / name).mkdir()
    assert CheckpointStore(folder).steps() == [7, 3]


def test_damaged_ones_are_set_aside_and_saved_again(folder):
    change_record(folder)
    store = CheckpointStore(folder, 2)
    with pytest.warns(DamagedCheckpoint, match="step 7 "):
        assert store.restore_newest(state()).step == 3
    assert (folder / "damaged" / "7").is_dir()
    assert store.steps() == [3]
    save(store, state(7))
    store.close()
    assert_same(CheckpointStore(folder).restore_newest(state()).state, state(7))


def test_if_all_are_damaged_nothing_is_changed(folder):
    change_record(folder, 3)
    change_record(folder, 7)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    with pytest.raises(NoWholeCheckpoint, match=r"step 7: .*; step 3: "):
        CheckpointStore(folder).restore_newest(state())
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize(
    "problem", [OSError(errno.EMFILE, "Too many open files"), MemoryError(), ImportError("zstd")]
)
def test_what_says_nothing_of_the_files_is_no_damage(folder, monkeypatch, problem):
    def fail(*_):
        raise problem

    monkeypatch.setattr(checkpoints, "read_checkpoint", fail)
    with pytest.raises(type(problem)):
        CheckpointStore(folder).restore_newest(state())
    assert sorted(os.listdir(folder)) == ["3", "7"]


def test_a_file_that_cannot_be_opened_is_no_damage(folder):
    """TensorStore says so with the error by which it also tells of files that were changed."""
    path = folder / "7" / "arrays" / "manifest.ocdbt"
    path.unlink()
    path.symlink_to(path.name)
    with pytest.raises(OSError, match=r"could not be read: .*symbolic links"):
        CheckpointStore(folder).restore_newest(state())
    assert sorted(os.listdir(folder)) == ["3", "7"]


@pytest.mark.parametrize("other", [{"model": Dense}, {"momentum": 0.0}, {"optimizer": "adamw"}])
def test_another_model_or_optimizer_is_refused_and_not_called_damaged(saved, other, monkeypatch):
    """Before anything is allocated: the settings of a folder may be of a model of any size."""
    like = state(**other)
    monkeypatch.setattr(checkpoints.np, "zeros", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DamagedCheckpoint)
        with pytest.raises(OtherModel, match="another model or optimiser"):
            CheckpointStore(saved).restore_newest(like)
    assert sorted(os.listdir(saved)) == ["3", "7"]


def test_what_a_crash_left_behind_is_no_checkpoint(folder):
    """A folder that was being written, one that was being removed, and other files."""
    shutil.copytree(folder / "7", folder / "9.orbax-checkpoint-tmp")
    shutil.rmtree(folder / "3" / "arrays")
    (folder / "notes.txt").write_text("mine")
    store = CheckpointStore(folder, 2)
    assert store.steps() == [7, 3]
    assert store.restore_newest(state()).step == 7
    save(store, state(9))
    store.close()
    assert store.steps() == [9, 7]
    assert store.restore_newest(state()).step == 9
    assert not (folder / "9.orbax-checkpoint-tmp").exists()


def test_only_the_newest_are_kept(tmp_path):
    store = CheckpointStore(tmp_path, 2)
    for step in (1, 2, 3, 4):
        save(store, state(step))
    save(store, state(4, seed=1))  # there already
    store.close()
    assert store.steps() == [4, 3]
    assert_same(store.restore_newest(state()).state, state(4))
    store.discard([4])
    assert store.steps() == [3]


def test_arrays_without_elements(tmp_path):
    """A layer without heads has such; Orbax cannot write them."""
    empty = replace(state(5), parameters={"none": jnp.zeros((0, 3)), "one": jnp.ones(1)})
    store = CheckpointStore(tmp_path)
    save(store, empty)
    store.close()
    restored = store.restore_newest(empty)
    assert restored.state.parameters["none"].shape == (0, 3)
    assert_same(restored.state, empty)


def test_a_write_that_failed_in_the_background_is_raised_when_the_store_is_closed(tmp_path):
    class Manager:
        closed = False

        def wait_until_finished(self):
            raise OSError(28, "No space left on device")

        def close(self):
            self.closed = True

    store = CheckpointStore(tmp_path)
    store._manager = manager = Manager()
    with pytest.raises(CheckpointNotWritten, match="No space left on device"):
        store.close()
    assert manager.closed
    store.close()


@pytest.mark.parametrize("room", [0, 1000])
def test_on_a_full_disk_the_message_is_a_line(room, folder):
    """TensorStore's message has pages."""
    store = CheckpointStore(folder)
    with full_files(room), pytest.raises(CheckpointNotWritten) as caught:  # noqa: PT012
        save(store, state(9))
        store.close()
    assert f"into {folder} (File too large);" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert CheckpointStore(folder).restore_newest(state()).step == 7
