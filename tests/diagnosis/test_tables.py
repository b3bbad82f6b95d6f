import pytest
from diagnosis.small_transformers import images, timm_dict

from convattn.diagnosis import diagnose
from convattn.diagnosis.tables import head_table, layer_table

OBVIOUS = {"layer", "head", "heads", "center", "shift", "nearest"}


@pytest.mark.parametrize("table_of", [head_table, layer_table])
def test_the_legend_names_every_column_and_rows_have_as_many_cells(table_of):
    table = table_of(diagnose(timm_dict(), images(), heads=2))
    left = [name for name in table.columns if name not in OBVIOUS and name not in table.legend]
    assert left == []
    assert {len(row) for row in table.rows} == {len(table.columns)}
