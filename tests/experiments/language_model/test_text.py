"""The text: its parts make it up, and every byte but the first is predicted once."""

import hashlib
import os

import jax.numpy as jnp
import numpy as np
import pytest
from language_model.text import read_text, split_text, windows_of
from language_model.training_text import TrainingText


def test_the_parts_make_up_the_text():
    content = bytes(range(256)) * 5
    splits = split_text(content, validation=0.25, test=0.125)
    assert b"".join(splits) == content
    assert [len(split) for split in splits] == [800, 320, 160]
    assert split_text(content, validation=0, test=0.5)[1] == b""


def predicted(windows: np.ndarray) -> bytes:
    return windows[:, 1:].tobytes()


def test_every_byte_but_the_first_is_predicted_once():
    content = bytes(range(100))
    windows = windows_of(content, 9)
    assert windows.shape == (11, 10)
    assert predicted(windows) == content[1:]
    assert (windows[1:, 0] == windows[:-1, -1]).all()
    assert predicted(windows[::2]) != content[1:]


def test_targets_are_the_bytes_after_the_inputs():
    windows = windows_of(bytes(range(100)), 9)
    text = TrainingText(windows, windows)
    arrays = jnp.asarray(text.arrays(text.train))
    inputs, targets = text.load(arrays, np.array([3, 0]), None, "float32")
    assert inputs.shape == targets.shape == (2, text.positions)
    assert inputs.dtype == "int32"
    assert (np.asarray(targets) == np.asarray(inputs) + 1).all()
    assert inputs[0, 0] == 27


def test_other_windows_have_another_identity():
    windows = windows_of(bytes(range(100)), 9)
    changed = windows.copy()
    changed[0, 0] += 1
    identity = TrainingText(windows, windows).identity()
    assert identity == TrainingText(windows.copy(), changed).identity()
    assert identity != TrainingText(changed, windows).identity()
    assert identity != TrainingText(windows, windows, validation=windows).identity()


def test_the_bundled_text_is_named_with_the_version_of_python():
    text = read_text()
    assert text.name.startswith("pydoc_data.topics of Python 3.")
    assert text.metadata()["sha256"] == hashlib.sha256(text.content).hexdigest()
    assert text.content.decode().count("\n") > 1000


def test_a_file_is_read_as_it_is(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xff\x00a")
    assert read_text(path).content == b"\xff\x00a"
    assert read_text(path).name == "a.txt"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="is empty"):
        read_text(path)
    with pytest.raises(ValueError, match="cannot be read"):
        read_text(tmp_path)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split_text(b"abc", validation=0.5, test=0.5), "whose sum is below 1"),
        (lambda: split_text(b"abc", validation=0.1, test=0.4), "leave a part empty"),
        (lambda: split_text(b"abc", validation=0.0, test=0.0), "that of the test above 0"),
        (lambda: windows_of(b"abc", 3), r"fills no window of 3 \+ 1"),
        (lambda: windows_of(b"abc", 0), "length"),
    ],
)
def test_what_leaves_nothing_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_pipe_is_refused(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"cannot be read .*is a pipe or a device"):
        read_text(tmp_path / "pipe")
