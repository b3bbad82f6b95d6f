"""The page holds what every stage has left, and says what is missing."""

import base64
import json

from convattn_lab.accelerator.page import page
from convattn_lab.accelerator.session import Ended, Session

ENVIRONMENT = dict.fromkeys(("jax", "jaxlib", "python", "convattn", "platform"), "1")
ENVIRONMENT |= {"backend": "gpu", "device": "Test <9000>", "devices": 2, "memory": 2**34}
ROW = {
    **{"case": "resnet20", "side": 32, "features": 16, "contestant": "auto", "chose": "shift"},
    **{"skipped": None, "median_forward": 0.001, "median_backward": 0.002},
    **{"cost": {"flops": 1e9, "bytes": 1e7}, "over_convolution": [1.0, 1.25, 1.5]},
    "memory": {"total": 2**20},
}
BENCH = {"peak": {"flops": 1e12, "bytes": 1e11}, "rows": [ROW, {"skipped": "too large"}]}


def session(**stages):
    started = {"started": "2026-01-01T00:00:00+00:00", "minutes": 25.0}
    return Session(ENVIRONMENT, None, stages, [started])


def test_an_empty_session_has_a_page(tmp_path):
    text = page(tmp_path, session()).decode()
    assert "2 × Test &lt;9000&gt;, 16 GiB each" in text
    assert text.count("not reached") == 6


def test_results_are_shown(tmp_path):
    (tmp_path / "bench.json").write_text(json.dumps(BENCH))
    (tmp_path / "bench.png").write_bytes(b"picture")
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "metrics.jsonl").write_text('{"epoch": 33}\n{"epoch": 7}\n')
    stages = {"bench": Ended("stopped", 9.0), "checks": Ended("failed", 1.0, "why & how")}
    text = page(tmp_path, session(**stages)).decode()
    assert "<td>auto (shift)</td><td>1.000</td><td>2.000</td><td>1.00 1.25 1.50</td>" in text
    assert "<td>50.0%</td><td>5.0%</td><td>1.0</td>" in text
    assert base64.b64encode(b"picture").decode() in text
    assert "failed: why &amp; how" in text
    assert "<td>7</td>" in text
    assert "<td>33</td>" not in text
