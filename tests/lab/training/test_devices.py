"""A batch is spread over devices that are there and that divide it."""

import jax
import pytest

from convattn_lab.training.devices import data_mesh


def test_too_many_devices_are_refused():
    count = len(jax.local_devices())
    with pytest.raises(ValueError, match=rf"devices={count + 1}, but this machine has {count} "):
        data_mesh(count + 1, count + 1)


def test_the_batch_must_be_divisible(monkeypatch):
    """The next smaller multiple is named; for a batch below the number of devices, that number."""
    device = jax.local_devices()[0]
    monkeypatch.setattr(jax, "local_devices", lambda *_: [device] * 8)
    with pytest.raises(ValueError, match=r"batch_size=100 is no multiple of the 8 .* take 96, or"):
        data_mesh(100)
    with pytest.raises(ValueError, match=r"batch_size=5 is no multiple of the 8 .* take 8, or"):
        data_mesh(5)
