"""The command line in this process, for the tests of all its commands."""

import functools
from types import SimpleNamespace

import pytest
from ledger.proof_files import claim, evidence, write

from convattn.cli import __main__ as cli
from convattn_ledger.runner import Options


@pytest.fixture
def convattn_command(capsys, monkeypatch):
    """Run the command line in this process; workers do without JAX."""
    without_jax = functools.partial(Options, preload=())
    monkeypatch.setattr("convattn_ledger.commands.verify.Options", without_jax)

    def command(*words):
        code = cli.main([str(word) for word in words])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return SimpleNamespace(code=code, out=captured.out, err=captured.err)

    return command


@pytest.fixture
def proofs(tmp_path):
    """Two claims that pass; the first has evidence that is not quick."""
    proved = evidence("'for all n'", level="PROVED", name="coq", quick=False, assumes="Coq")
    return write(
        tmp_path / "proofs", c__a=claim("C20.lemma1", evidence(), proved), s__b=claim("S.finite")
    )
