"""What the second checker does with what is too large, takes too long or is no file."""

import copy
import os
import subprocess
from pathlib import Path

import pytest
from second_checker.second_checker_runs import (
    NOT_COVERED,
    certificates,
    committed,
    differences,
    run,
    word,
    written,
)

from convattn_check import check
from convattn_check.convolution import Axis

pytestmark = pytest.mark.slow


def large():
    """Right, but more than the second checker decides; by a name."""
    bound = certificates("lower_bound")["S.content-K3-P2"]
    kernel = [0] * (2 * 350 * 350)
    kernel[0] = kernel[350 * 350 + 1] = 1  # tap 0 from channel 0 to 0, tap 1 from 0 to 1
    sizes = {"kernel_size": [2], "patch_size": [1], "in_channels": 350, "out_channels": 350}
    minor = {"rows": [[0, 0, 0, 0], [0, 0, 0, 1]], "columns": [[0], [1]], "determinant": 1}
    axis = Axis(64, 30, 64)
    offsets = [[offset] for offset in axis.offsets()]
    count = len(offsets)
    layer = {
        "kernel_size": [64],
        "patch_size": [30],
        "dilation": [64],
        "stride": [1],
        "ring": [[-offsets[0][0], offsets[-1][0]]],
        "offsets": offsets,
        "pattern": [axis.pattern()],
        "heads": count,
        "attention": {"family": "one_hot_limit", "score": "enumerated", "targets": offsets}
        | {"codes": list(range(count)), "spare": -1},
        "values": {"family": "sparse", "entries": [[at, at, "1"] for at in range(count)]},
    }
    equality = certificates("equality")["S.dp2-K3-P1"]
    return {
        "a long kernel": bound
        | {"body": sizes | minor | {"kernel": kernel, "heads": 2, "tokens_per_side": [2]}},
        "a large pattern": equality | {"body": equality["body"] | layer},
    }


def test_what_is_too_large_is_not_covered_rather_than_rejected(program, tmp_path):
    paths = written(tmp_path, large())
    status, lines = run(program, *paths)
    assert (status, [word(line) for line in lines]) == (NOT_COVERED, ["NOT COVERED"] * 2)
    verdicts = [check(path.read_bytes(), ignore_digests=True) for path in paths]
    assert [verdict.reason for verdict in verdicts if not verdict.accepted] == []


def costly():
    """Small files that take minutes to decide, unless their cost is seen first."""
    power = copy.deepcopy(certificates("equality")["S.dp1-K3-P1"])
    power["body"]["attention"]["bases"][0] = "9" * 3990
    power["body"]["attention"]["exponents"][-1] = 4096
    pattern = large()["a large pattern"]
    pattern["body"]["pattern"] = [[[[]]]]
    return {"a long power": power, "a pattern of another shape": pattern}


def test_what_takes_minutes_is_rejected_first(program, tmp_path):
    paths = written(tmp_path, costly())
    status, lines = run(program, *paths)
    assert (status, [word(line) for line in lines]) == (1, ["REJECT"] * 2)
    assert not any("decision" in line for line in lines)
    assert differences(program, paths) == []


def test_a_pipe_is_not_waited_for(program, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    status, lines = run(program, tmp_path / "pipe", "/dev/zero")
    assert status == 1
    assert all(line.endswith("it is a pipe or a device") for line in lines)


def test_verdicts_that_cannot_be_written(program):
    with Path("/dev/full").open("w") as full:
        command = [program, committed()[0]]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("the verdicts cannot be written")
