"""Panels of a figure, and the colours of heads."""

import pytest

from convattn_lab.analysis.panels import head_color, panels_of


def test_heads_have_ten_strong_colours_and_then_their_light_ones() -> None:
    import matplotlib

    colours = matplotlib.colormaps["tab20"].colors
    actual = [head_color(number)[:3] for number in range(1, 24)]
    order = [*range(0, 20, 2), *range(1, 20, 2), 0, 2, 4]
    assert actual == [colours[index] for index in order]


@pytest.mark.parametrize(("count", "rows", "columns"), [(1, 1, 1), (3, 1, 3), (5, 2, 3)])
def test_panels_are_at_most_three_in_a_row(count, rows, columns) -> None:
    figure, panels = panels_of(count, 3, 2, title="", caption="", sharex=True)
    assert figure.get_size_inches().tolist() == [max(3 * columns, 4), 2 * rows]
    assert len(panels) == count
    assert len(figure.axes) == rows * columns
    assert [axes.axison for axes in figure.axes] == [n < count for n in range(rows * columns)]
    ticks = [axes.xaxis.get_tick_params()["labelbottom"] for axes in panels]
    assert ticks == [n >= count - columns for n in range(count)]
