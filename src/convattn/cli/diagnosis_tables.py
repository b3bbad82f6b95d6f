"""A table of a diagnosis on the terminal."""

from rich.table import Table as RichTable
from rich.text import Text

from convattn.diagnosis.tables import Table


def printed_table(table: Table) -> RichTable:
    """The table for the terminal, names at the left and numbers at the right."""
    printed = RichTable(box=None, pad_edge=False)
    for name in table.columns:
        printed.add_column(name, justify="left" if name == "layer" else "right", overflow="fold")
    for name, *cells in table.rows:
        printed.add_row(Text(name), *cells)
    return printed
