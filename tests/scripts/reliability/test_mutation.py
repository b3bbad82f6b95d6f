"""mutation.py: what it changes, what notices the change, and what is left."""

import importlib
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "scripts" / "reliability"
PLANTED = '''"""A module."""

LIMIT = 5


def clip(value: int, where: str) -> int:
    """Text."""
    if value < LIMIT and value:
        raise ValueError(f"{value} of {where}", "not changed")
    return max(value, LIMIT)
'''
CHANGES = [
    ("", "LIMIT = 5", "LIMIT = (4)"),
    ("", "LIMIT = 5", "LIMIT = 6"),
    ("clip", "if value < LIMIT and value:", "if ((value < LIMIT)):"),
    ("clip", "if value < LIMIT and value:", "if (value):"),
    ("clip", "if value < LIMIT and value:", "if False and value:"),
    ("clip", "if value < LIMIT and value:", "if value != LIMIT and value:"),
    ("clip", "if value < LIMIT and value:", "if value <= LIMIT and value:"),
    ("clip", "return max(value, LIMIT)", "return min(value, LIMIT)"),
]


@pytest.fixture
def scripts(monkeypatch):
    """The modules, which import one another by name."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield lambda name: importlib.import_module(name)
    for name in ("mutants", "mutation"):
        sys.modules.pop(name, None)


def changes(scripts, code):
    mutants = scripts("mutants").mutants_of("planted.py", code.encode(), {})
    return sorted((mutant.function, mutant.before, mutant.after) for mutant in mutants)


def test_every_change_of_a_module(scripts):
    assert changes(scripts, PLANTED) == sorted(CHANGES)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = a == b", ["x = False", "x = True", "x = a <= b", "x = a >= b"]),
        ("x = a == 'b'", ["x = False", "x = True", "x = a == 'b~'"]),
        ("x = a not in b", ["x = False", "x = True"]),
        ("x = -a // b", ["x = -a % b", "x = -a * b", "x = a // b"]),
        ("x = {a, *b}", ["x = {*b}", "x = {a}"]),
        ("x = {'a': b, **c}", ["x = {'a': b}", "x = {'a~': b, **c}", "x = {**c}"]),
        ("x = [δ for δ in a if b(δ)]", ["x = [δ for δ in () if b(δ)]",
         "x = [δ for δ in a if False]", "x = [δ for δ in a if True]"]),
        ("x[0] = a", ["pass", "x[(-1)] = a", "x[1] = a"]),
        ("x += a", ["pass", "x *= a", "x -= a"]),
        ("x = zip(a, b, strict=True)", []),
        ("x = a[b:]", ["x = a[:]"]),
        ("show(sorted(a))", ["pass", "show(a)"]),
        ("for a in b: break", ["for a in (): break", "for a in b: continue"]),
        ("x: list[int, 3] = a", []),
    ],
)  # fmt: skip
def test_every_change_of_a_line(before, after, scripts):
    assert changes(scripts, before) == [("", before, line) for line in after]


def test_the_name_of_a_mutant_says_which_of_two_equal_lines_it_is(scripts):
    code = b"def f(a):\n    if a:\n        return 1\n    return 1\n"
    moved = b"\n\n" + code
    mutants, later = (scripts("mutants").mutants_of("m.py", source, {}) for source in (code, moved))
    assert [mutant.key for mutant in mutants] == [mutant.key for mutant in later]
    assert len({mutant.key for mutant in mutants}) == len(mutants)
    twos = [mutant for mutant in mutants if mutant.after == "return 2"]
    assert [mutant.number for mutant in twos] == [0, 1]
    assert twos[1].applied(code) == b"def f(a):\n    if a:\n        return 1\n    return 2\n"


def test_messages_are_left_out(scripts, tmp_path):
    (tmp_path / "m.py").write_text("def require(holds, code, reason): pass\n")
    known = scripts("mutants").parameters([tmp_path / "m.py"])
    mutants = scripts("mutants").mutants_of("n.py", b"require(a, 'code', 'a reason')", known)
    assert {mutant.after for mutant in mutants} == {"pass", "require(a, 'code~', 'a reason')"}


def test_a_sample_changes_only_by_what_is_no_mutant_any_more(scripts):
    """One more line makes others, of which some may be drawn; a line less takes its own away."""
    sample = scripts("mutation").sample
    code = "\n".join(f"x{n} = {n} + {n + 7}" for n in range(30))
    before, after = (
        scripts("mutants").mutants_of("m.py", source.encode(), {})
        for source in (code, code.replace("x3 = 3 + 10\n", "") + "\ny = 2")
    )
    assert len(sample(before, 40, 1)) == 40
    assert {mutant.key for mutant in sample(before, 40, 1)} != {
        mutant.key for mutant in before[:40]
    }
    assert sample(before, 40, 1) == sample(reversed(before), 40, 1) != sample(before, 40, 2)
    sampled, later = (
        {mutant.key for mutant in sample(mutants, 40, 1)} for mutants in (before, after)
    )
    gone = {mutant.key for mutant in before} - {mutant.key for mutant in after}
    new = {mutant.key for mutant in after} - {mutant.key for mutant in before}
    assert gone & sampled
    assert new
    assert len(sampled - later - gone) <= len(later & new) < 10  # each new one takes one's place


@pytest.mark.slow
def test_every_mutant_that_is_listed_as_equivalent_is_one(scripts):
    mutation = scripts("mutation")
    listed = mutation.equivalents(mutation.EQUIVALENT)
    files = [mutation.ROOT / name for name in sorted({key[0] for key in listed})]
    assert mutation.stale(listed, mutation.find_mutants(mutation.ROOT, files)) == []
    assert all(len(reason) > 20 for reason in listed.values())


def test_one_that_is_no_mutant_is_named(scripts, tmp_path, monkeypatch, capsys):
    mutation = planted(scripts, tmp_path, monkeypatch, "assert larger(2, 1) == 2")
    listed = tmp_path / "equivalent.toml"
    entry = 'module = "{}"\nfunction = "larger"\nbefore = "return max(a, b)"\nafter = ["{}"]\n'
    name = "src/convattn/bounds/planted.py"
    listed.write_text("[[equivalent]]\n" + entry.format(name, "return a") + 'reason = "none"\n')
    monkeypatch.setattr(mutation, "EQUIVALENT", listed)
    assert run(mutation, tmp_path) == 2
    assert "return a" in capsys.readouterr().err


def planted(scripts, tmp_path, monkeypatch, assertion):
    """A tree of one function with one test."""
    file = tmp_path / "src/convattn/bounds/planted.py"
    file.parent.mkdir(parents=True)
    for folder in (file.parent, file.parents[1]):
        (folder / "__init__.py").write_text("")
    file.write_text("def larger(a, b):\n    return max(a, b)\n")
    test = tmp_path / "tests/bounds/test_planted.py"
    test.parent.mkdir(parents=True)
    head = "from convattn.bounds.planted import larger\n\n\ndef test_it():\n"
    test.write_text(f"{head}    {assertion}\n")
    mutation = scripts("mutation")
    (tmp_path / "empty.toml").write_text("")
    monkeypatch.setattr(mutation, "EQUIVALENT", tmp_path / "empty.toml")
    monkeypatch.setattr(mutation, "ROOT", tmp_path)
    return mutation


def run(mutation, tree):
    return mutation.main([str(tree / "src/convattn/bounds")])


@pytest.mark.slow
def test_what_no_test_notices_is_printed(scripts, tmp_path, monkeypatch, capsys):
    mutation = planted(scripts, tmp_path, monkeypatch, "assert larger(2, 2) == 2")
    assert run(mutation, tmp_path) == 1
    printed = capsys.readouterr().out
    assert "- return max(a, b)\n    + return min(a, b)" in printed
    assert "| all | 1 | 0 | 0 | 1 | 0.0 % |" in printed


@pytest.mark.slow
def test_what_a_test_of_the_package_notices_is_not_printed(scripts, tmp_path, monkeypatch, capsys):
    """Not only the test named after the module, but those that import it."""
    mutation = planted(scripts, tmp_path, monkeypatch, "assert larger(2, 2) == 2")
    near = tmp_path / "tests/bounds/test_planted.py"
    other = near.with_name("test_user.py")
    other.write_text(near.read_text().replace("larger(2, 2)", "larger(2, 1)"))
    assert run(mutation, tmp_path) == 0
    assert "| all | 1 | 1 | 0 | 0 | 100.0 % |" in capsys.readouterr().out


@pytest.mark.slow
def test_what_a_slow_test_notices_is_not_printed(scripts, tmp_path, monkeypatch):
    mutation = planted(scripts, tmp_path, monkeypatch, "assert larger(2, 2) == 2")
    test = tmp_path / "tests/bounds/test_planted.py"
    slow = (
        "\n\nimport pytest\n\n\n@pytest.mark.slow\ndef test_slow():\n    assert larger(2, 1) == 2\n"
    )
    test.write_text(test.read_text() + slow)
    assert run(mutation, tmp_path) == 0


@pytest.mark.slow
def test_tests_that_fail_by_themselves_are_refused(scripts, tmp_path, monkeypatch):
    mutation = planted(scripts, tmp_path, monkeypatch, "assert larger(2, 1) == 1")
    with pytest.raises(RuntimeError, match=r"without any error in the program: .*test_it"):
        run(mutation, tmp_path)


@pytest.mark.parametrize(
    ("module", "test"),
    [
        ("src/convattn/files.py", "tests/test_files.py"),
        ("src/convattn/networks/weights/files.py", "tests/networks/weights/test_files.py"),
        (
            "src/convattn/networks/weights/consistency.py",
            "tests/networks/weights/test_beside_kernel.py",
        ),
        ("src/convattn_check/equality.py", "tests/convattn_check/test_check_equality.py"),
        ("src/convattn_lab/training/checkpoints.py", "tests/lab/training/test_checkpoints.py"),
    ],
)
def test_the_tests_of_a_module(scripts, module, test):
    mutation = scripts("mutation")
    files = mutation.test_files(mutation.ROOT, module)
    assert files[0] == test
    assert len(files) == len(set(files))


@pytest.fixture
def judge(scripts, tmp_path):
    """The judge of the checker, by two certificates and a manifest's words."""
    mutation = scripts("mutation")
    judge = mutation.Judge(mutation.ROOT, tmp_path, only_certificates=True)
    content = (mutation.ROOT / "certificates/C20.rank-h1-o3.json").read_bytes()
    true = mutation.Certificate("true", content, {"reason": ""})
    false = {"code": "malformed", "reason": ""}
    judge.certificates = [mutation.Certificate("false", b"[", false), true]
    return mutation, judge


@pytest.mark.slow
def test_a_certificate_notices_what_changes_its_verdict(judge):
    mutation, judge = judge
    path = mutation.ROOT / "src/convattn_check/rank.py"
    mutants = mutation.find_mutants(mutation.ROOT, [path])
    by = {mutant.after: judge(mutant) for mutant in mutants if mutant.before.startswith("stated")}
    assert by["False"] == "true"
    assert by["stated == rank >= min(inputs, dimension)"] == ""  # equivalent
    assert (judge.folder / "src/convattn_check/rank.py").read_bytes() == path.read_bytes()


@pytest.mark.slow
def test_a_loop_without_end_is_noticed(judge, monkeypatch):
    mutation, judge = judge
    monkeypatch.setattr(mutation, "SLOW", 0.5)
    (judge.folder / "src/convattn_check/rank.py").write_text("while True:\n    pass\n")
    assert "took over 0.5 s" in judge.by_certificates()
