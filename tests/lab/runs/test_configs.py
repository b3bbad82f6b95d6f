"""Finding configs and choosing one."""

import pytest

from convattn_lab.runs.configs import find_configs, get_config

GOOD = '''"""A title.

More."""
from convattn_lab.runs.settings import RunSettings
CONFIG = RunSettings()
'''


def test_configs_are_found_without_being_run(tmp_path) -> None:
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text('"""Raises."""\nraise SystemExit\n')
    (tmp_path / "_shared.py").write_text("no docstring, and no Python")
    result = find_configs(tmp_path)
    assert list(result) == ["bad", "good"]
    assert result["good"].title == "A title."
    assert result["good"].load().model.depth == 6
    assert result["good"].repeats == ""
    (tmp_path / "good.py").write_text(GOOD.replace("More.", "  Repeats    C20, Table 1"))
    assert find_configs(tmp_path)["good"].repeats == "C20, Table 1"


def test_an_unknown_name_brings_the_nearest(tmp_path) -> None:
    (tmp_path / "good.py").write_text(GOOD)
    for name, hint in (("goood", r"did you mean good\? "), ("xyz", "")):
        with pytest.raises(ValueError, match=f"no config '{name}': {hint}There are good"):
            get_config(tmp_path, name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CONFIG = 1\n", "no docstring, but should open with the paper's item"),
        ('"""Title."""\n', "has no CONFIG, but expected one"),
        ('"""Title."""\nCONFIG = 1\n', "has no CONFIG, but expected one"),
    ],
)
def test_what_is_no_config_is_refused(tmp_path, text, message) -> None:
    (tmp_path / "bad.py").write_text(text)
    with pytest.raises(ValueError, match=message):
        get_config(tmp_path, "bad").load()
