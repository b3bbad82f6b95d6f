"""A diagnosis as one HTML file: the tables, the notes and a picture of each layer."""

import base64
from collections.abc import Mapping
from html import escape

from convattn.diagnosis.report import Diagnosis
from convattn.diagnosis.tables import Table, head_table, layer_table

_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 68rem; padding: 0 1rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .15rem .7rem; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left }
thead th { border-bottom: 1px solid }
figure { margin: 1.5rem 0 }
img { background: white; max-width: 100% }
"""


def diagnosis_page(model: str, diagnosis: Diagnosis, pictures: Mapping[str, bytes]) -> bytes:
    """The page in UTF-8, which asks for no other file.

    Args:
        model: The name in its title.
        diagnosis: What it shows.
        pictures: By name, `"layer01.svg"` for the layer of number 1; layers without one stand in
            the tables alone.
    """
    notes = "".join(f"<li>{escape(note)}</li>" for note in diagnosis.notes)
    figures = "".join(
        _figure(layer.name, pictures[f"layer{layer.number:02}.svg"])
        for layer in diagnosis.layers
        if f"layer{layer.number:02}.svg" in pictures
    )
    title = f"Attention heads of {escape(model)}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{title}</h1>
<ul>{notes}</ul>
<h2>Layers</h2>
{_table(layer_table(diagnosis))}
<h2>Heads</h2>
{_table(head_table(diagnosis))}
<h2>What the heads attend to</h2>
{figures}
</body>
</html>
""".encode()


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n" for row in table.rows
    )
    return (
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n'
        f"</table></div>\n<p>{escape(table.legend)}</p>"
    )


def _figure(name: str, picture: bytes) -> str:
    """A picture of its own, so that what has the same `id` in two of them does not meet."""
    source = f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"
    alternative = escape(f"What each head of {name} attends to")
    return f'<figure><img src="{source}" alt="{alternative}"></figure>\n'
