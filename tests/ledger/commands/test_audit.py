import json
import sys
from types import ModuleType, SimpleNamespace

import pytest


def test_audit(convattn_command, tmp_path, monkeypatch):
    x64 = []
    report = SimpleNamespace(
        render=lambda console: console.print("alpha 88"), as_dict=lambda: {"alpha": 88}
    )
    module = ModuleType("convattn_ledger.audit.report")
    module.run_audit = lambda: x64.append(jax.config.jax_enable_x64) or report
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    monkeypatch.setitem(sys.modules, "convattn_ledger.audit.report", module)
    jax.config.update("jax_enable_x64", False)
    try:
        done = convattn_command("audit", "--json", tmp_path / "audit.json")
    finally:
        jax.config.update("jax_enable_x64", before)
    assert (done.code, done.out) == (0, "alpha 88\n")
    assert json.loads((tmp_path / "audit.json").read_text()) == {"alpha": 88}
    assert x64 == [True]
    assert convattn_command("audit", "--json", "/nowhere/x").code == 2
