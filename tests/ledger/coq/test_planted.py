"""False versions of real theorems, on the real foundation: Coq must refuse each."""

import pytest

from ledger.coq.coq_tree import copy_proofs, needs_coq, prove

pytestmark = [needs_coq, pytest.mark.slow]

FINITE, THEOREM1 = "sharpened/finite.v", "li2021/theorem1.v"
BLOCK = "output_block m n r1 r2 W d.1 d.2"
# For each plant the file, and what is put in place of what.
PLANTS = {
    "a wrong sign in a shift": (THEOREM1, {BLOCK: "output_block m n r1 r2 W (m.*2 - d.1)%N d.2"}),
    "a ring too thin": (THEOREM1, {"(r1 <= p1 * m)%N": "(r1 <= p1 * m.+1)%N"}),
    "one head too few": (
        FINITE,
        {
            "(finite_attention (@ringed_target rows columns m n) e)": "(fun d : token_offset m n "
            "=>\n        finite_attention (@ringed_target rows columns m n) e (Some d))",
            f"(finite_maps (fun d : token_offset m n => {BLOCK}) N e)": "(fun d => finite_maps "
            f"(fun d : token_offset m n => {BLOCK}) N e (Some d))",
        },
    ),
}


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The two theorems and their foundation, which compile as they are."""
    folder = tmp_path_factory.mktemp("planted")
    copy_proofs(folder / "coq", THEOREM1, FINITE)
    outcome = prove(folder / "coq", folder / "out")
    assert outcome.failures == ()
    assert [item.checked for item in outcome.theorems] == [True, True]
    return folder


@pytest.mark.parametrize("name", PLANTS)
def test_what_is_false_does_not_compile(name, copied):
    file, edits = PLANTS[name]
    path = copied / "coq" / file
    original = text = path.read_text("utf-8")
    for old, new in edits.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    try:
        path.write_text(text, "utf-8")
        outcome = prove(copied / "coq", copied / "out")
    finally:
        path.write_text(original, "utf-8")
    (failure,) = outcome.failures
    assert failure.file == file
    assert failure.line > text[: text.index("Theorem")].count("\n")
    assert "Coq refuses it" in failure.found
    assert "yntax" not in failure.found
    assert {item.theorem.file: item.checked for item in outcome.theorems} == {
        FINITE: file != FINITE,
        THEOREM1: file != THEOREM1,
    }
