import pytest

from convattn.diagnosis import picture
from convattn.diagnosis.picture import new_figure, picture_bytes, save_picture, text_height, wrapped


def line_figure():
    figure = new_figure(2, 2)
    figure.add_subplot().plot([0, 1], [1, 0], gid="line")
    return figure


def test_the_same_numbers_give_the_same_bytes() -> None:
    for file_format in picture.FORMATS:
        content = picture_bytes(line_figure(), file_format)
        assert content == picture_bytes(line_figure(), file_format)
        assert b"<dc:date>" not in content


def test_files_are_replaced_whole_or_not_at_all(tmp_path, monkeypatch) -> None:
    paths = save_picture(line_figure(), tmp_path / "new", "line")
    assert [path.name for path in paths] == ["line.png", "line.svg"]
    before = [path.read_bytes() for path in paths]

    def fail(figure, file_format):
        raise RuntimeError("drawing failed")

    monkeypatch.setattr(picture, "picture_bytes", fail)
    with pytest.raises(RuntimeError, match="drawing failed"):
        save_picture(line_figure(), tmp_path / "new", "line")
    assert [path.read_bytes() for path in paths] == before
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["line.png", "line.svg"]


def test_a_long_title_and_caption_lie_within_the_picture() -> None:
    title = "attention of the token at row 8, column 8, the same for all images\n" + "a-name" * 20
    figure = new_figure(4, 1, title=title, caption="each map scaled to its own maximum; " * 3)
    figure.add_subplot()
    figure.draw_without_rendering()
    width, height = figure.get_size_inches() * figure.dpi
    for text in figure.texts:
        box = text.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= width, text
        assert 0 <= box.y0 < box.y1 <= height, text
    assert figure.texts[0].get_text().replace("\n", "").count("a-name") == 20
    assert height / figure.dpi > 2


def test_panels_are_arranged_once_before_all_formats(monkeypatch) -> None:
    """As matplotlib does when it draws."""
    figures = [new_figure(3, 2, title="some words"), new_figure(3, 2, title="some words")]
    for figure in figures:
        figure.add_subplot().set_ylabel("a label")
    start = figures[0].axes[0].get_position().bounds
    figures[0].draw_without_rendering()
    monkeypatch.setattr(picture, "picture_bytes", lambda *args: b"")
    picture.picture_files(figures[1], "name")
    first, second = (figure.axes[0].get_position().bounds for figure in figures)
    assert first == second != start


def test_text_takes_a_quarter_more_than_its_lines_and_eight_points() -> None:
    assert text_height("", 9.0) == 0
    assert text_height("one", 9.0) == (1.25 * 9 + 8) / 72
    assert text_height("one\ntwo", 8.0) == (2 * 1.25 * 8 + 8) / 72
    figure = new_figure(3, 2, title="one", caption="one")
    heights = text_height("one", 9.0) + text_height("one", 8.0)
    assert figure.get_size_inches().tolist() == [3, 2 + heights]


def test_a_line_has_as_many_letters_as_fit_beside_the_margin() -> None:
    """72·(2 - 0.2) points of 0.64 · 9 and 0.64 · 8 each; one where none fits."""
    figure = new_figure(2, 1, title="a" * 60, caption="b" * 60)
    title, caption = (text.get_text().split("\n") for text in figure.texts)
    assert [len(line) for line in title] == [22, 22, 16]
    assert [len(line) for line in caption] == [25, 25, 10]
    assert wrapped("ab", 0.01, 10) == "a\nb"
    assert wrapped("on-the way\n\nout", 1, 10) == "on-the way\n\nout"


def test_a_dollar_in_the_name_of_a_run_is_no_formula() -> None:
    figure = new_figure(3, 1, title="a $b$ $")
    assert b"a $b$ $" in picture_bytes(figure, "svg")
