import pytest

from convattn.ledger.statement import parse_statement

PLAIN = """Title line.
More of it.

Printed. What the paper says.

    A = B

Verified. What is true.

Repair. What changed.

Proof. Why."""


def test_sections_are_taken_apart():
    statement = parse_statement(PLAIN)
    assert statement.title == "Title line.\nMore of it."
    assert statement.printed == "What the paper says.\n\n    A = B"
    assert statement.verified == "What is true."
    assert statement.repair == "What changed."
    assert statement.proof == "Why."


@pytest.mark.parametrize(
    "style", ["{0}:\n{1}", "{0}\n-------\n{1}", "## {0}\n\n{1}", "**{0}.** {1}", "{0}\n\n{1}"]
)
def test_headings_may_be_written_in_several_ways(style):
    sections = {name: f"The {name} text." for name in ("Printed", "Verified", "Repair", "Proof")}
    text = "\n\n".join(style.format(*pair) for pair in sections.items())
    statement = parse_statement(f"Title.\n\n{text}")
    assert statement.printed == "The Printed text."
    assert statement.proof == "The Proof text."


def test_nothing_to_repair_may_stand_for_the_repair():
    text = PLAIN.replace("Repair. What changed.", "Nothing to repair. The sign is a convention.")
    assert parse_statement(text).repair == "Nothing to repair. The sign is a convention."
    text = PLAIN.replace("Repair. What changed.", "Nothing to repair.")
    assert parse_statement(text).repair == "Nothing to repair."


def test_a_sentence_that_begins_with_a_name_is_no_heading():
    text = PLAIN.replace("What is true.", "What is true.\nProof of this needs care.")
    assert parse_statement(text).verified == "What is true.\nProof of this needs care."


@pytest.mark.parametrize("name", ["Printed", "Verified", "Repair", "Proof"])
def test_a_missing_or_empty_section_is_refused_by_name(name):
    lines = PLAIN.splitlines()
    number = next(i for i, line in enumerate(lines) if line.startswith(f"{name}."))
    without = "\n".join([*lines[:number], "Elsewhere. Text.", *lines[number + 1 :]])
    with pytest.raises(ValueError, match=f"lacks {name}"):
        parse_statement(without)


def test_an_empty_section_is_refused():
    with pytest.raises(ValueError, match="lacks Proof"):
        parse_statement(PLAIN.replace("Proof. Why.", "Proof."))


@pytest.mark.parametrize("docstring", [None, "", "  \n"])
def test_no_docstring_is_refused(docstring):
    with pytest.raises(ValueError, match="no docstring"):
        parse_statement(docstring)


def test_sections_may_not_be_there_twice_or_contradict_each_other():
    with pytest.raises(ValueError, match="'Proof' twice"):
        parse_statement(f"{PLAIN}\n\nProof. Again.")
    with pytest.raises(ValueError, match="keep one"):
        parse_statement(f"{PLAIN}\n\nNothing to repair.")
