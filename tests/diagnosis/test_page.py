from html.parser import HTMLParser

from diagnosis.small_transformers import images, timm_dict

from convattn.diagnosis import diagnose
from convattn.diagnosis.page import diagnosis_page
from convattn.diagnosis.tables import head_table, layer_table

EMPTY = {"meta", "img"}


class Reader(HTMLParser):
    """The text of each cell and title, and where images come from; refuses what is left open."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.open, self.texts, self.sources = [], [], []
        self.feed(page.decode())
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert not {"href", "srcset"} & dict(attrs).keys()
        self.sources += [value for name, value in attrs if name == "src"]
        if tag not in EMPTY:
            self.open.append(tag)
            self.texts.append((tag, ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.texts:
            tag, text = self.texts[-1]
            self.texts[-1] = (tag, text + data)

    def all(self, tag):
        return [text.rstrip() for name, text in self.texts if name == tag]


def test_the_page_holds_both_tables_and_asks_for_nothing_else():
    report = diagnose(timm_dict(), images(), heads=2)
    name = "<b>net</b> & sons"
    page = Reader(diagnosis_page(name, report, {"layer01.svg": b"<svg/>"}))
    assert page.all("title") == page.all("h1") == [f"Attention heads of {name}"]
    tables = layer_table(report), head_table(report)
    cells = [cell for table in tables for row in table.rows for cell in row]
    assert page.all("td") == cells
    assert page.all("th") == [name for t in tables for name in t.columns]
    assert page.all("li") == list(report.notes)
    assert page.sources == ["data:image/svg+xml;base64,PHN2Zy8+"]
