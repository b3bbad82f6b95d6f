"""Lines of Python in folders: code, docstrings, comments and blank lines, as a Markdown table.

python scripts/count_lines.py src/convattn src/convattn_check scripts
"""

import argparse
import ast
from collections import Counter
from pathlib import Path

KINDS = ("code", "docstrings", "comments", "blank")


def count(source: str) -> Counter[str]:
    """The lines of a module by their kind.

    >>> count('"A module."\\n\\nx = 1  # one\\n# two\\n') == dict.fromkeys(KINDS, 1)
    True
    """
    with_docstrings = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, with_docstrings) and ast.get_docstring(node) is not None:
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines: Counter[str] = Counter()
    for number, line in enumerate(map(str.strip, source.splitlines()), 1):
        if number in docstrings:
            lines["docstrings"] += 1
        else:
            lines["blank" if not line else "comments" if line[0] == "#" else "code"] += 1
    return lines


def main() -> None:
    """Print a row for each folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    print(f"| | {' | '.join(KINDS)} | all |\n|---|{'---:|' * (len(KINDS) + 1)}")
    for folder in parser.parse_args().folders:
        files = sorted(folder.rglob("*.py"))
        lines = sum((count(path.read_text("utf-8")) for path in files), Counter())
        cells = [lines[kind] for kind in KINDS] + [lines.total()]
        print(f"| {folder} | {' | '.join(f'{cell:,}' for cell in cells)} |")


if __name__ == "__main__":
    main()
