"""The bounds of the checker are those that docs/certificates.md lists, and there are no others."""

import importlib
import pkgutil
import re
from pathlib import Path

import convattn_check

PAGE = Path(__file__).resolve().parents[2] / "docs" / "certificates.md"
ROW = re.compile(r"^\| `(\w+)` \| `([A-Z_]+)` \| ([\d,^]+) \|", re.MULTILINE)
NO_BOUNDS = {("convolution", "ABSENT")}


def number(text):
    base, _, exponent = text.replace(",", "").partition("^")
    return int(base) ** int(exponent or 1)


def constants():
    """The numbers in capitals that a module sets itself."""
    names = {module.name for module in pkgutil.iter_modules(convattn_check.__path__)}
    for name in sorted(names - {"__main__"}):
        module = importlib.import_module(f"convattn_check.{name}")
        source = Path(module.__file__).read_text("utf-8")
        for constant, value in vars(module).items():
            sets = re.search(rf"^([A-Z_]+, )*{constant}(, [A-Z_]+)* = ", source, re.MULTILINE)
            if re.fullmatch("[A-Z][A-Z_]*", constant) and isinstance(value, int) and sets:
                yield (name, constant), value


def test_the_page_lists_every_bound_with_its_value():
    rows = ROW.findall(PAGE.read_text("utf-8"))
    listed = {(module, constant): number(value) for module, constant, value in rows}
    assert len(listed) == len(rows)
    assert {key: value for key, value in constants() if key not in NO_BOUNDS} == listed
