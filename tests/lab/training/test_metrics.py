"""Metrics: one whole line for each epoch, none twice and none missing."""

import json
import struct

import pytest

from convattn_lab.training.metrics import FILE_NAME, MetricsLog, read_metrics


def write(folder, steps, begin=0):
    with MetricsLog(folder, begin) as log:
        for step in steps:
            log.write({"step": step, "epoch": step // 2, "loss": 1 / step, "note": "text"})


def steps_of(folder):
    return [line["step"] for line in read_metrics(folder)]


def test_lines_after_the_step_are_replaced(tmp_path):
    write(tmp_path, (2, 4, 6))
    write(tmp_path, (4, 6, 8), begin=2)
    assert steps_of(tmp_path) == [2, 4, 6, 8]
    write(tmp_path, ())
    assert read_metrics(tmp_path) == []


@pytest.mark.parametrize("rest", ['{"step": 6, "lo', "{", "\x00\x00", "\udcff"])
def test_a_last_line_that_was_cut_off_is_dropped(tmp_path, rest):
    write(tmp_path, (2, 4))
    path = tmp_path / FILE_NAME
    with path.open("a", errors="surrogateescape") as file:
        file.write(rest)
    assert steps_of(tmp_path) == [2, 4]
    write(tmp_path, (6,), begin=4)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [2, 4, 6]


def test_a_line_in_the_middle_that_is_none_is_refused(tmp_path):
    write(tmp_path, (2, 4))
    path = tmp_path / FILE_NAME
    path.write_text("{\n" + path.read_text())
    with pytest.raises(ValueError, match="line 1 "):
        read_metrics(tmp_path)


def test_a_line_is_in_the_file_as_soon_as_it_is_written(tmp_path):
    with MetricsLog(tmp_path, 0) as log:
        log.write({"step": 2})
        assert read_metrics(tmp_path) == [{"step": 2}]


def records(content):
    """The records of an event file: a length, its checksum, the bytes, their checksum."""
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        yield content[12 : 12 + length]
        content = content[16 + length :]


def scalars(folder):
    """(step, name) of what TensorBoard keeps: a session's start drops what is at it or after."""
    from tensorboardX.proto.event_pb2 import Event

    current = []
    for path in sorted((folder / "tensorboard").iterdir()):
        for record in records(path.read_bytes()):
            event = Event.FromString(record)
            if event.HasField("session_log"):
                current = [entry for entry in current if entry[0] < event.step]
            current += [(event.step, value.tag) for value in event.summary.value]
    return current


def test_tensorboard_holds_all_once_it_is_flushed(tmp_path):
    """What is not flushed is lost with its process."""
    with MetricsLog(tmp_path, 0) as log:
        log.losses(1, [0.5] * 200)
        log.flush()
        assert scalars(tmp_path) == [(step, "loss") for step in range(1, 201)]


def test_tensorboard_forgets_what_is_replaced(tmp_path):
    """Also what was written before the first checkpoint of a run that died."""
    for begin, steps in ((0, (2, 4)), (0, (2, 4, 6)), (4, (6, 8))):
        with MetricsLog(tmp_path, begin) as log:
            log.losses(begin + 1, [0.5])
            for step in steps:
                log.write({"step": step, "accuracy": 0.5})
    expected = [(1, "loss"), *((step, "accuracy") for step in (2, 4, 6, 8)), (5, "loss")]
    assert sorted(scalars(tmp_path)) == sorted(expected)
