"""The extras of pyproject.toml bring what the messages say, and nothing else needs them."""

import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from convattn.extras import EXTRA, require
from convattn_ledger.claim import Evidence, Level, Run
from convattn_ledger.worker import _judge

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
EXTRAS = (  # the modules that ask for an extra as soon as they are imported
    *("convattn.cli", "convattn.nnx", "convattn.torch", "convattn.sac.modules"),
    "convattn.networks.weights.flax_layout",
    "convattn.settings",
)
DISTRIBUTION = {"PIL": "pillow", "orbax": "orbax-checkpoint", "sklearn": "scikit-learn"}


@pytest.mark.parametrize("package", EXTRA)
def test_an_extra_brings_its_package(package):
    name = DISTRIBUTION.get(package, package)
    assert name in " ".join(PROJECT["optional-dependencies"][EXTRA[package]])
    assert name not in " ".join(PROJECT["dependencies"])


@pytest.mark.slow
def test_without_the_extras_one_kernel_converts_and_flax_is_asked_for():
    program = f"""
import sys
for name in {[name for name in EXTRA if find_spec(name)]}:
    sys.modules[name] = None
import jax.numpy as jnp
import convattn as ca, convattn.sac, convattn_ledger.structures, convattn.networks, convattn_ledger
assert ca.conv_to_attention(jnp.ones((3, 3, 1, 1))).heads == 10
assert ca.count_heads(3).offsets == 9
from convattn.cli.__main__ import main
assert main(["heads", "--kernel-size", "3"]) == 2
from importlib import import_module
from pkgutil import walk_packages
for module in walk_packages(ca.__path__, "convattn."):
    if not module.name.startswith({EXTRAS}):
        import_module(module.name)
from convattn.nnx import AttentionConv
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "convattn heads: tyro is not installed; it comes with an extra" in done.stderr
    assert "flax is not installed" in done.stderr.splitlines()[-1], done.stderr
    assert "pip install 'convattn[nnx]'" in done.stderr


def test_the_package_for_pytorch_names_its_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, "convattn.torch", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"torch is not .* pip install 'convattn\[torch\]'"
    ):
        import_module("convattn.torch")


def test_evidence_that_needs_an_extra_is_not_run_here(monkeypatch):
    monkeypatch.setitem(sys.modules, "flax", None)

    def check(run):
        import flax  # noqa: F401

    def defect(run):
        import no_such_package  # noqa: F401

    run = Run(0, True, Path())
    passed, reason = _judge(Evidence("needs Flax", Level.TESTED, check), run)
    assert passed is None
    assert "convattn[nnx]" in reason
    assert _judge(Evidence("a defect", Level.TESTED, defect), run)[0] is False
    with pytest.raises(ImportError, match=r"convattn\[nnx\]"):
        require("flax")
