import pytest

from convattn.networks.diagnosis import picture
from convattn.networks.diagnosis.picture import new_figure, picture_bytes, save_picture


def drawn():
    figure = new_figure(2, 2)
    figure.add_subplot().plot([0, 1], [1, 0], gid="line")
    return figure


def test_the_same_numbers_give_the_same_bytes() -> None:
    for file_format in picture.FORMATS:
        found = picture_bytes(drawn(), file_format)
        assert found == picture_bytes(drawn(), file_format)
        assert b"<dc:date>" not in found


def test_files_are_replaced_whole_or_not_at_all(tmp_path, monkeypatch) -> None:
    paths = save_picture(drawn(), tmp_path / "new", "line")
    assert [path.name for path in paths] == ["line.png", "line.svg"]
    before = [path.read_bytes() for path in paths]

    def fail(figure, file_format):
        raise RuntimeError("drawing failed")

    monkeypatch.setattr(picture, "picture_bytes", fail)
    with pytest.raises(RuntimeError, match="drawing failed"):
        save_picture(drawn(), tmp_path / "new", "line")
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


def test_a_dollar_in_the_name_of_a_run_is_no_formula() -> None:
    figure = new_figure(3, 1, title="a $b$ $")
    assert b"a $b$ $" in picture_bytes(figure, "svg")
