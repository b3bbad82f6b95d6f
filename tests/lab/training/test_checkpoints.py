"""A checkpoint gives back the bits that were saved, or is passed over."""

import errno
import json
import os
import shutil
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from full_files import full_files
from lab.training.tiny import Dense, Normalized, settings

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
from convattn_lab.training.state import TrainState, initial_state, named_arrays


def state(step=0, seed=0, model=Normalized, **changes):
    """A state that differs in every number from that of another step."""
    optimizer = make_optimizer(settings(**changes), 12)
    found = initial_state(model(seed), optimizer, seed)[1]
    return jax.tree.map(lambda leaf: leaf + jnp.asarray(step, leaf.dtype), found)


def save(store, given, **record):
    arrays = named_arrays(given)
    store.save(int(arrays["step"]), arrays, record)


def assert_same(found, expected):
    one, other = named_arrays(found), named_arrays(expected)
    assert one.keys() == other.keys()
    assert digest(one) == digest(other)
    for name, array in one.items():
        assert_equal(array, other[name], name)


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
    """A copy of it."""
    return shutil.copytree(saved, tmp_path / "checkpoints")


def test_what_was_saved_comes_back(saved):
    """Every bit, and the record with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DamagedCheckpoint)
        found = CheckpointStore(saved).restore_newest(state(), set_aside=False)
    assert found.step == 7
    assert found.record["seconds"] == 7 / 3
    assert_same(found.state, state(7))
    with pytest.raises(AssertionError):  # planted
        assert_same(found.state, state(3))


def test_none_yet(tmp_path):
    store = CheckpointStore(tmp_path / "none")
    assert store.restore_newest(state()) is None
    assert store.steps() == []
    assert not (tmp_path / "none").exists()


DAMAGES = {
    "halved": lambda whole, bit: whole[: len(whole) // 2],
    "emptied": lambda whole, bit: b"",
    "flipped": lambda whole, bit: (
        whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :]
    ),
    "deleted": lambda whole, bit: None,
}


# Orbax's event loop may be closed before a reader that failed tells it so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", DAMAGES)
def test_any_damage_to_any_file_is_harmless_or_found(folder, kind):
    """Right bits, or a warning and those of the checkpoint before: never anything else."""
    like, good = state(), {step: digest(named_arrays(state(step))) for step in (3, 7)}
    files = sorted(path for path in (folder / "7").rglob("*") if path.is_file())
    assert len(files) > 8
    rng, passed_over = np.random.default_rng(0), set()
    for path in files:
        whole = path.read_bytes()
        content = DAMAGES[kind](whole, int(rng.integers(0, 8 * len(whole))))
        path.unlink() if content is None else path.write_bytes(content)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            found = CheckpointStore(folder).restore_newest(like, set_aside=False)
        path.write_bytes(whole)
        told = [each for each in seen if each.category is DamagedCheckpoint]
        assert digest(named_arrays(found.state)) == good[found.step], path
        assert found.record["seconds"] == found.step / 3, path
        assert bool(told) == (found.step == 3), path
        if told:
            assert "the checkpoint of step 7" in str(told[0].message), path
            passed_over.add(path.relative_to(folder / "7").parts[0])
    assert passed_over >= {"arrays", "record"}


def test_arrays_that_were_exchanged_are_found(folder):
    """All files are whole, but of another checkpoint: only the digest tells."""
    shutil.rmtree(folder / "7" / "arrays")
    shutil.copytree(folder / "3" / "arrays", folder / "7" / "arrays")
    with pytest.raises(ValueError, match="the SHA-256 of its arrays is"):
        read_checkpoint(folder / "7", state())


def test_a_record_that_was_changed_is_found(folder):
    path = folder / "7" / "record" / "metadata"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "best": 0.9}))
    with pytest.raises(ValueError, match="its record was changed"):
        read_checkpoint(folder / "7", state())


def test_arrays_far_larger_than_their_files_are_not_allocated(folder, monkeypatch):
    monkeypatch.setattr(checkpoints, "most_unpacked", lambda size: 10)
    with pytest.raises(ValueError, match=r"its arrays are said to have [\d,]+ bytes, but expected"):
        read_checkpoint(folder / "7", state())


def test_another_layout_is_told_before_anything_is_allocated(folder, monkeypatch):
    """The settings that a run's folder names may be of a model of any size."""
    monkeypatch.setattr(checkpoints.np, "zeros", None)
    with pytest.raises(OtherModel):
        read_checkpoint(folder / "7", state(model=Dense))


def test_arrays_of_another_name_shape_or_type_have_another_layout():
    """Float32, int32 and uint32 zeros have the same bytes: only their layout differs."""
    arrays = [
        {"a": np.zeros(2, np.float32)},
        {"b": np.zeros(2, np.float32)},
        {"a": np.zeros((2, 1), np.float32)},
        *({"a": np.zeros(2, kind)} for kind in (np.int32, np.uint32)),
    ]
    for identity in (checkpoints.layout, digest):
        assert len({identity(each) for each in arrays}) == len(arrays)


def test_folders_that_are_no_steps_are_left_alone(folder):
    for name in ("²", "007", "1e3", "9" * 30):
        (folder / name).mkdir()
    assert CheckpointStore(folder).steps() == [7, 3]


def test_damaged_ones_are_set_aside_and_saved_anew(folder):
    (folder / "7" / "record" / "metadata").write_text("{")
    store = CheckpointStore(folder, 2)
    with pytest.warns(DamagedCheckpoint, match=r"step 7 .* is damaged \(.*the one before"):
        assert store.restore_newest(state()).step == 3
    assert (folder / "damaged" / "7").is_dir()
    assert store.steps() == [3]
    save(store, state(7))
    store.close()
    assert_same(CheckpointStore(folder).restore_newest(state()).state, state(7))


def test_all_damaged(folder):
    for step in (3, 7):
        (folder / str(step) / "record" / "metadata").write_text("{")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    message = (
        r"none of the checkpoints of .* is whole \(checkpoints/, step 7: .*; step 3: .*\); start"
    )
    with pytest.raises(NoWholeCheckpoint, match=message):
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


# As above.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_file_that_cannot_be_opened_is_no_damage(folder):
    """TensorStore says so with the error by which it also tells of files that were changed."""
    path = folder / "7" / "arrays" / "manifest.ocdbt"
    path.unlink()
    path.symlink_to(path.name)
    with pytest.raises(OSError, match=r"could not be read: .*symbolic links"):
        CheckpointStore(folder).restore_newest(state())
    assert sorted(os.listdir(folder)) == ["3", "7"]


def test_a_reader_changes_nothing(folder):
    (folder / "7" / "record" / "metadata").write_text("{")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    with pytest.warns(DamagedCheckpoint):
        CheckpointStore(folder).restore_newest(state(), set_aside=False)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize("other", [{"model": Dense}, {"momentum": 0.0}, {"optimizer": "adamw"}])
def test_another_model_or_optimizer_is_refused(saved, other):
    """And nothing is called damaged."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DamagedCheckpoint)
        with pytest.raises(OtherModel, match="another model or optimiser; take the settings"):
            CheckpointStore(saved).restore_newest(state(**other))
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
    whole = state(5)
    empty = TrainState(
        {"none": jnp.zeros((0, 3)), "one": jnp.ones(1)},
        *(getattr(whole, name) for name in ("statistics", "optimizer", "step", "key")),
        whole.loss_sum,
        whole.correct,
    )
    store = CheckpointStore(tmp_path)
    save(store, empty)
    store.close()
    found = store.restore_newest(empty)
    assert found.state.parameters["none"].shape == (0, 3)
    assert_same(found.state, empty)


def test_what_could_not_be_written_is_said_when_the_folder_is_let_go_of(tmp_path):
    """Orbax raises what has failed in the background where it is waited for."""

    class Manager:
        closed = False

        def wait_until_finished(self):
            raise OSError(28, "No space left on device")

        def close(self):
            self.closed = True

    store = CheckpointStore(tmp_path)
    store._manager = manager = Manager()
    with pytest.raises(CheckpointNotWritten, match=r"\(No space left on device\); see whether"):
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
    assert str(caught.value) == (
        f"a checkpoint could not be written into {folder} (File too large); see whether the disk "
        "is full or the folder read-only, then resume: the newest whole checkpoint still stands"
    )
    assert CheckpointStore(folder).restore_newest(state()).step == 7
