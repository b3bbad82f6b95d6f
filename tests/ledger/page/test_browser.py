"""The report in a browser: filters, search, graph, keyboard, themes, a phone, paper, axe-core."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import serious, wait_until

pytestmark = pytest.mark.browser
FOCUSED = "document.activeElement.id || document.activeElement.closest('[id]')?.id"
CHANGED = "([name, old]) => document.getElementById(name).textContent !== old"
# axe-core takes seconds for each thousand elements, and claims and sources are all alike.
FEWER = """() => {
    const kept = ["s-finite", "c20-alpha46", "c20-heads16", "l21-theorem1"];
    document.querySelectorAll(".claim").forEach((n) => kept.includes(n.id) || n.remove());
    document.querySelectorAll("#table tbody tr:nth-of-type(n+5)").forEach((n) => n.remove());
    document.querySelectorAll("#sources details:nth-of-type(n+3)").forEach((n) => n.remove());
    document.querySelectorAll("#environment tr:nth-of-type(n+9)").forEach((n) => n.remove());
}"""
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 375, "height": 800}


@pytest.fixture
def opened(new_page: Callable[..., Any], report_file: Path) -> Callable[..., Any]:
    """Opens the report; a request to anywhere fails the test."""

    def open_report(anchor: str = "", **options: Any) -> Any:
        page = new_page(**{"viewport": DESKTOP, **options})
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(report_file.as_uri() + anchor)
        assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
        return page

    return open_report


def visible_claims(page: Any) -> list[str]:
    return page.evaluate(
        """[...document.querySelectorAll(".claim")]
            .filter((node) => node.offsetParent).map((node) => node.dataset.id)"""
    )


def test_filters_and_search(opened: Callable[..., Any]) -> None:
    page = opened()
    whole = len(visible_claims(page))
    assert whole > 90
    page.select_option("#paper", "C20")
    page.select_option("#verdict", "refuted")
    assert visible_claims(page) == ["C20.alpha46", "C20.lemma3", "C20.rank"]
    assert page.inner_text("#count") == f"3 of {whole} claims"
    page.fill("#search", "subnormal FLOAT32")
    assert visible_claims(page) == ["C20.alpha46"]
    page.fill("#search", "no claim says zyxwv")
    assert visible_claims(page) == []
    page.click("button[type=reset]")
    wait_until(
        page, f"document.getElementById('count').textContent === '{whole} of {whole} claims'"
    )
    page.select_option("#level", "ENCLOSED")
    assert 0 < len(visible_claims(page)) < whole


def test_a_link_opens_what_is_folded_and_shows_what_is_filtered(opened: Callable[..., Any]) -> None:
    page = opened("#coq-foundation-rank.family_rank")
    assert page.locator("#coq-foundation-rank\\.family_rank").is_visible()
    page.select_option("#paper", "C20")
    page.evaluate("location.hash = '#s-finite'")
    wait_until(page, "document.getElementById('s-finite').offsetParent !== null")


def test_a_malformed_fragment_does_no_harm(opened: Callable[..., Any]) -> None:
    page = opened("#%E0%A4%A")
    page.locator('.alone .node[data-node="S.finite"]').focus()
    assert page.inner_text("#graph-text").startswith("S.finite stands on")


def test_the_graph_shows_what_a_claim_stands_on(opened: Callable[..., Any]) -> None:
    page = opened("#graph")
    lemma = page.locator('.node[data-node="foundation/rank.v"]')
    assert not lemma.is_visible()
    page.check("#lemmas")
    assert lemma.is_visible()
    assert not page.locator(".alone").is_visible()
    node = page.locator('.whole .node[data-node="L21.theorem5"]')
    node.focus()
    near = page.evaluate("[...document.querySelectorAll('.node.near')].map((n) => n.dataset.node)")
    assert {"L21.theorem5", "S.heads", "foundation/rank.v"} <= set(near)
    assert "B19.sac" not in near
    assert page.inner_text("#graph-text").startswith("L21.theorem5 stands on ")
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#l21-theorem5"
    page.locator("#search").focus()
    assert page.locator(".node.near").count() == 0


def test_by_keyboard_alone(opened: Callable[..., Any]) -> None:
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("nav a[href='#figures']").focus()
    page.keyboard.press("Enter")
    focused = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        focused.add(page.evaluate(FOCUSED))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        inside_graph = page.evaluate("Boolean(document.activeElement.closest('.node'))")
        assert outline != "none" or inside_graph
    assert {"preset", "kernel", "form", "strength", "model", "patch-4"} <= focused
    assert {"form-5", "last-5", "strength-5"} <= focused
    for figure in ("", "-5"):
        page.locator(f"#strength{figure}").focus()
        before = page.inner_text(f"#strength-label{figure}")
        page.keyboard.press("ArrowLeft")
        wait_until(page, CHANGED, [f"strength-label{figure}", before])
    page.locator("#search").focus()
    page.keyboard.type("S.finite")
    assert "S.finite" in visible_claims(page)


@pytest.mark.parametrize("width", [400, 1000, 1800])
def test_the_window_is_filled_and_each_row_of_the_table_is_one_line(
    opened: Callable[..., Any], width: int
) -> None:
    page = opened(viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for part in ("#table table", "#figures", "#graph", "#claims"):
        box = page.locator(part).bounding_box()
        assert box["width"] > width - 40, part
    assert page.evaluate("document.querySelector('main h2').id") == "table-title"
    heights = page.evaluate(
        "[...document.querySelectorAll('#table tbody tr')].map((row) => row.offsetHeight)"
    )
    assert len(heights) > 90
    assert max(heights) < 48  # two lines have 25 px each, and 11 around them


def test_each_head_of_the_first_kernel_is_seen(opened: Callable[..., Any]) -> None:
    page = opened()
    spans = """() => [...document.querySelectorAll("#heads-1 canvas")].map((canvas) => {
        const { width, height } = canvas;
        const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
        return Math.max(...data.filter((_, k) => k % 4 < 3).map((value) => Math.abs(value - 128)));
    })"""
    shown = page.evaluate(spans)
    assert len(shown) == 10
    assert min(shown) >= 16  # a sixteenth of what lies between black and white
    page.select_option("#preset", "Sobel")
    wait_until(page, "document.querySelector('#heads-1').textContent.includes('0 × the mean')")
    assert min(page.evaluate(spans)) < 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_themes_and_widths(opened: Callable[..., Any], scheme: str, size: dict[str, int]) -> None:
    page = opened(viewport=size, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(21, 23, 26)") == (scheme == "dark")
    page.select_option("#theme", "light" if scheme == "dark" else "dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != background


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_serious(opened: Callable[..., Any], scheme: str) -> None:
    page = opened(viewport=PHONE if scheme == "light" else DESKTOP, color_scheme=scheme)
    page.evaluate(FEWER)
    page.evaluate(
        "document.querySelectorAll('#s-finite details').forEach((n) => { n.open = true; })"
    )
    assert serious(page) == []


def test_what_is_serious_is_found(opened: Callable[..., Any]) -> None:
    page = opened()
    page.evaluate(FEWER)
    page.evaluate(
        "document.querySelector('#theme').parentElement.replaceWith(document.querySelector('#theme'))"
    )
    assert any("name" in problem for problem in serious(page))


def test_on_paper(opened: Callable[..., Any]) -> None:
    page = opened()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#s-finite details").first.evaluate("(node) => node.open")
    assert not page.locator("#figures").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    page.evaluate("window.print = () => dispatchEvent(new Event('printed'))")
    page.locator("[data-print='errata-c20']").click()
    page.emulate_media(media="print")
    assert page.locator("#errata-c20").is_visible()
    assert not page.locator("#errata-l21").is_visible()
    assert not page.locator("#claims").is_visible()
    assert page.pdf(format="A4").count(b"/Type /Page\n") in (1, 2)


def test_without_javascript_everything_but_the_figures_is_there(opened: Callable[..., Any]) -> None:
    page = opened(java_script_enabled=False)
    assert page.locator("#s-finite").is_visible()
    assert page.locator(".graph .node").count() > 100
    for control in ("#search", "#strength", "#theme", "[data-print]"):
        assert not page.locator(control).first.is_visible()
