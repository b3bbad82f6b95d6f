"""The page in Chromium: by keyboard alone, in both themes and widths, and its numbers."""

import re

import pytest
from browser import serious

from convattn_lab.explorer.pictures import as_png

pytestmark = pytest.mark.browser
SIZES = {"desktop": (1280, 900), "phone": (360, 740)}


def number(value: float) -> str:
    """As the page writes it."""
    return f"{float(f'{value:.3g}'):g}"


@pytest.fixture
def opened(new_page, served):
    def open_page(size: str = "desktop", theme: str = "light", url: str = served.url):
        width, height = SIZES[size]
        page = new_page(viewport={"width": width, "height": height}, color_scheme=theme)
        page.goto(url)
        page.locator("#taps-table td").first.wait_for()
        page.locator("#least").filter(has_text=re.compile(".")).wait_for()
        return page

    return open_page


def cells(page, name: str) -> list[str]:
    return page.locator("#measures tr").filter(has_text=name).locator("td").all_inner_texts()


def query(page, row: int, column: int, head: int = 1) -> None:
    """Wait until the page shows this query."""
    label = re.compile(rf"head {head}, query at row {row}, column {column};")
    page.get_by_role("img", name=label).wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_serious_and_nothing_overflows(opened, size, theme) -> None:
    page = opened(size, theme)
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
    shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (shade == "rgb(21, 23, 26)") == (theme == "dark")
    page.evaluate(
        "document.querySelector('#row').labels[0].replaceWith(document.querySelector('#row'))"
    )
    assert serious(page) != []  # a field without a label


def test_by_keyboard_alone(opened, vit) -> None:
    page = opened()
    order = []
    for _ in range(12):
        page.keyboard.press("Tab")
        order.append(
            page.evaluate("document.activeElement.id || document.activeElement.textContent")
        )
    assert order[:7] == ["image", "layer", "head", "picture", "row", "column", "file"]
    page.locator("#picture").focus()
    query(page, 1, 1)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    query(page, 0, 2)
    page.keyboard.press("ArrowRight")  # no further
    page.keyboard.press("ArrowDown")
    query(page, 1, 2)
    page.locator("#layer").focus()
    page.keyboard.press("ArrowDown")
    page.locator("h2", has_text="Head 1 of 2, layer 2").wait_for()
    page.locator("#head").focus()
    page.keyboard.press("ArrowDown")
    query(page, 1, 2, 2)
    page.get_by_role("button", name="Position only").focus()
    page.keyboard.press("Enter")
    page.get_by_role("img", name=re.compile("^Attention by position alone")).wait_for()
    page.locator("#said").filter(has_text="layer 2, head 2, query at row 1").wait_for(
        state="attached"
    )
    own = vit.attention(vit.samples[0], 1, (1, 2)).numbers["position"]
    assert cells(page, "Distance")[0] == number(own["distance"][1])


def test_the_numbers_are_the_models(opened, vit) -> None:
    page = opened()
    page.locator("#heads button").nth(1).click()
    query(page, 1, 1, 2)
    own = vit.attention(vit.samples[0], 0, (1, 1)).numbers["full"]
    all_queries = vit.numbers(0)["heads"][1]
    assert cells(page, "Distance") == [number(own["distance"][1]), number(all_queries["distance"])]
    assert cells(page, "Spread") == [number(own["spread"][1]), number(all_queries["spread"])]
    assert cells(page, "By position") == ["–", number(all_queries["positions"])]
    assert cells(page, "To convolution") == ["–", number(all_queries["to_convolution"])]
    assert own["distance"][0] != own["distance"][1]
    largest = vit.attention(vit.samples[0], 0, (1, 1)).full[1].max()
    assert page.locator("#most").inner_text() == number(largest)
    page.locator("#large").click(position={"x": 2, "y": 2})
    query(page, 0, 0, 2)
    colour = page.evaluate(
        "() => { const c = document.querySelector('#large'); return"
        " [...c.getContext('2d').getImageData(c.width - 3, c.height - 3, 1, 1).data]; }"
    )
    row = vit.attention(vit.samples[0], 0, (0, 0)).full[1]
    brightest = row[1, 2] == row.max()
    assert (colour[:3] == [253, 231, 37]) == brightest


@pytest.mark.parametrize("how", ["file", "drop"])
def test_a_picture_of_ones_own(opened, vit, how) -> None:
    page = opened("phone")
    content = as_png(vit.pixels(vit.samples[5])[::-1])
    if how == "file":
        page.locator("#file").set_input_files(
            {"name": "mine.png", "mimeType": "image/png", "buffer": content}
        )
    else:
        page.evaluate(
            """bytes => { const held = new DataTransfer();
            held.items.add(new File([new Uint8Array(bytes)], 'mine.png', {type: 'image/png'}));
            document.querySelector('#drop').dispatchEvent(
                new DragEvent('drop', {dataTransfer: held, bubbles: true})); }""",
            [*content],
        )
    page.locator("#image option:checked", has_text="mine.png").wait_for(state="attached")
    key = page.locator("#image").input_value()
    expected = number(vit.attention(key, 0, (1, 1)).numbers["full"]["distance"][0])
    page.locator("#measures td", has_text=expected).first.wait_for()
    assert expected != number(vit.attention("s0", 0, (1, 1)).numbers["full"]["distance"][0])


def test_a_layer_before_and_after(opened, serve, layer) -> None:
    page = opened(url=serve(layer).url)
    page.locator("#difference", has_text="largest difference in this channel").wait_for()
    gap = abs(layer.outputs("s0", 0).before - layer.outputs("s0", 0).after)
    mantissa = f"{gap.max():.2e}".partition("e")[0]
    assert f"in all 4 channels {mantissa}e-" in page.locator("#difference").inner_text()
    assert page.locator("#channel option").count() == 4
    assert serious(page) == []
