"""Snapshots: what was written comes back."""

import numpy as np
import pytest
from comparison import assert_equal

from convattn_lab.training.snapshots import read_snapshot, snapshot_epochs, write_snapshot


def test_snapshots_come_back_in_order(tmp_path):
    assert snapshot_epochs(tmp_path) == []
    for epoch in (10, 0, 12345):
        write_snapshot(tmp_path, epoch, {"a.b": np.full(3, epoch)})
    (tmp_path / "snapshots" / ".epoch-0007.npz.x1").write_text("cut off")
    assert snapshot_epochs(tmp_path) == [0, 10, 12345]
    assert_equal(read_snapshot(tmp_path, 10)["a.b"], [10] * 3)
    with pytest.raises(ValueError, match=r"epoch 5; .*\[0, 10, 12345\]"):
        read_snapshot(tmp_path, 5)


def test_what_a_full_disk_leaves_behind_is_refused_by_name(tmp_path):
    write_snapshot(tmp_path, 1, {"a": np.arange(50.0), "b": np.ones(3)})
    path = tmp_path / "snapshots" / "epoch-0001.npz"
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match="epoch-0001"):
            read_snapshot(tmp_path, 1)


def test_nothing_is_unpickled(tmp_path):
    write_snapshot(tmp_path, 1, {"a": np.array([print], object)})
    with pytest.raises(ValueError, match="pickled"):
        read_snapshot(tmp_path, 1)
