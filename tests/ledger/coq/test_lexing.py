import pytest

from convattn.ledger.coq.lexing import blank, sentences


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a (* b *) c", "a c"),
        ("a (* (* b *) c *) d", "a d"),
        ('a "(*" b "*)" c', 'a "(*" b "*)" c'),
        ('a (* "*)" b *) c', "a c"),
        ('a (* " (* " *) c', "a c"),
        ('a "x""(*" b', 'a "x""(*" b'),
        ("a (* b\n c *) d", "a d"),
        ("a (* b", "a"),
        ("a *) b", "a *) b"),
        ("Adm(**)itted", "Adm itted"),
    ],
)
def test_comments_are_blanked_and_strings_are_not(text, code):
    found = blank(text)
    assert found.split() == code.split()
    assert len(found) == len(text)
    assert found.count("\n") == text.count("\n")


def test_strings_may_be_blanked_too():
    assert blank('a "b c" d (* "e" *)', strings=True).rstrip() == 'a "   " d'
    assert blank('a "b\nc" d', strings=True) == 'a " \n " d'


def test_sentences_end_at_a_full_stop_before_white_space():
    text = 'Lemma a x : x.1 = x.+1.\nProof. (* no. end *) by rewrite /M.f //... Qed. Check "a. b".'
    found = list(sentences(text))
    assert [item.text for item in found] == [
        "Lemma a x : x.1 = x.+1.",
        "Proof.",
        "by rewrite /M.f //...",
        "Qed.",
        'Check "    ".',
    ]
    assert [item.line for item in found] == [1, 2, 2, 2, 2]
    assert [text[item.start : item.end][-2:] for item in found] == ["1.", "f.", "..", "d.", '".']


@pytest.mark.parametrize(
    "prefix",
    ["", "Local ", "Global ", "#[local] ", "#[export, foo(bar)]\n", "Time Fail "],
)
def test_a_command_is_seen_behind_what_stands_before_it(prefix):
    (sentence,) = sentences(f"{prefix}Axiom a : nat.")
    assert sentence.command == "Axiom a : nat."
