from ledger.proof_files import write


def test_ledger_prints_or_writes_the_document(convattn_command, proofs, tmp_path):
    done = convattn_command("ledger", "--proofs", proofs)
    assert done.code == 0
    assert "### C20.lemma1" in done.out
    target = tmp_path / "ledger.md"
    assert convattn_command("ledger", "--proofs", proofs, "--output", target).out == ""
    assert target.read_text("utf-8") == done.out
    write(proofs, s__x="1/0")
    done = convattn_command("ledger", "--proofs", proofs)
    assert done.code == 1
    assert "s/x.py: cannot be imported" in done.err
    assert convattn_command("ledger", "--output", "/nowhere/x").code == 2
