"""A batch is spread over devices that are there and that divide it."""

import jax
import pytest

from convattn_lab.training.devices import data_mesh


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((9, 9), "devices=9, .* has 8 "),
        ((100,), "batch_size=100 .* 8 .* take 96,"),
        ((5,), "batch_size=5 .* 8 .* take 8,"),  # below the number of devices, that number
    ],
)
def test_devices_and_batches_that_do_not_fit_are_refused(monkeypatch, arguments, message):
    device = jax.local_devices()[0]
    monkeypatch.setattr(jax, "local_devices", lambda *_: [device] * 8)
    with pytest.raises(ValueError, match=message):
        data_mesh(*arguments)
