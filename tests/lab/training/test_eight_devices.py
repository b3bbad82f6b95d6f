"""The same global batches give the same losses on one device, on two and on eight.

BatchNorm takes the statistics of the global batch, and dropout draws the same, so that only the
order of the sums differs. An entry of a gradient is a sum over the batch of terms that are
themselves sums over pixels, twice through BatchNorm: fewer than n = 4·(batch + pixels) roundings
in a row, so each step moves the parameters by a relative γ_n at most, as far as nothing cancels.
What a relative change of all parameters does to the losses of the run is measured, at 2⁻²⁰, where
it is linear: A times as much; what cancels is counted in with a factor 8. So the losses of T steps
agree within 8·T·γ_n·A, in float64 some 10⁻¹¹, where a real mistake is eight powers of ten larger.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from comparison import assert_within, gamma
from lab.training.devices_process import MOVED, PLATFORMS, STEPS
from lab.training.tiny import SIDE, process_environment

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("devices_process.py")
ROUNDINGS = 4 * (32 + 3 * SIDE**2)


@pytest.fixture(scope="module")
def losses():
    done = subprocess.run(
        [sys.executable, SCRIPT],
        capture_output=True,
        text=True,
        env=process_environment(),
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["devices"] == 8
    assert len(result["float64"]["1"]) == STEPS
    return result


def bound(losses, dtype):
    one = np.array(losses["float64"]["1"])
    amplification = max(np.abs(np.array(moved) - one).max() for moved in losses["moved"]) / MOVED
    assert amplification > 1e-3  # or nothing was measured
    return 8 * STEPS * gamma(ROUNDINGS, dtype) * amplification


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_losses_agree(losses, dtype):
    one = losses[dtype]["1"]
    assert one[-1] < one[0]
    for count, others in losses[dtype].items():
        assert_within(others, one, bound(losses, dtype), f"losses on {count} devices")


@pytest.mark.parametrize("planted", ["groups", "weighted"])
def test_a_mean_of_each_device_is_noticed(losses, planted):
    """BatchNorm by the statistics of each device, and the mean of means of unequal shares."""
    with pytest.raises(AssertionError, match="too far"):
        assert_within(losses[planted], losses["float64"]["1"], 1e4 * bound(losses, "float64"))


def test_the_step_on_all_devices_is_exported(losses):
    assert losses["exported"] == [8, *PLATFORMS]
