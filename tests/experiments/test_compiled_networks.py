import json

import compiled_networks
import pytest


@pytest.mark.slow
def test_a_row_for_each_dtype(tmp_path, capsys):
    path = tmp_path / "rows.json"
    code = compiled_networks.CompiledNetworks(("VGG-like, patches",), images=2, json=path)()
    assert code == 0
    rows = json.loads(path.read_text())["rows"]
    assert [row["dtype"] for row in rows] == ["float64", "float32"]
    for row, limit in zip(rows, (1e-12, 5e-6), strict=True):
        assert row["passed"]
        assert row["difference"] <= limit
        assert row["difference"] < row["bound"]
    assert len(capsys.readouterr().out.splitlines()) == 3
