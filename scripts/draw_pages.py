"""Draws the README's pictures and the social card from the report: figures 1 and 6, as computed.

Usage: python scripts/draw_pages.py [--report build/report/index.html] [--output docs/pictures]

The report is that of `make verify`; Chromium draws it (Debian: apt-get install chromium).
"""

import argparse
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from convattn.files import write_file

ROOT = Path(__file__).resolve().parents[1]
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
KERNEL = "emboss"  # its first head has the factor -2/(1 - ε) = -4
FIGURE = """() => {
    document.querySelectorAll("#figure-1 .controls").forEach((node) => node.remove());
    document.querySelector("#figure-1").style.cssText = "margin: 0; padding: 16px; width: 840px";
    document.querySelector("#figure-1 figcaption").style.maxWidth = "none";
    const columns = (name, count) => {
        document.querySelector(name).style.cssText =
            `max-width: none; grid-template-columns: repeat(${count}, 1fr)`;
    };
    columns("#heads-1", 5);
    columns("#sums-1", 4);
}"""
COMPILED = """() => {
    for (const name of ["figcaption", ".controls", "#text-6"]) {
        document.querySelector(`#figure-6 ${name}`).remove();
    }
    document.querySelector("#figure-6").style.cssText = "margin: 0; padding: 16px; width: 840px";
    document.querySelector("#maps-6").style.cssText =
        "display: grid; grid-template-columns: repeat(4, 1fr); gap: 12px";
    document.querySelectorAll("#maps-6 > div").forEach((maps) => {
        maps.style.cssText = "grid-template-columns: 1fr; margin: 0";
    });
}"""
CARD = """() => {
    const [image, sum, convolution] = document.querySelectorAll("#sums-1 > div");
    const head = document.querySelector("#heads-1 > div");
    const card = document.createElement("main");
    card.innerHTML = `<h1>Self-attention can express convolution</h1>
        <p>${document.querySelector("section[aria-label=Summary] p").textContent}</p><div></div>
        <p><b>convattn</b>: proofs, certificates, and exact attention in JAX</p>`;
    card.querySelector("div").append(image, head, sum, convolution);
    document.body.replaceChildren(card);
    const style = document.createElement("style");
    style.textContent = `body { font-size: 26px } main { max-width: none; padding: 36px 48px }
        h1 { font-size: 50px; margin: 0 } p { max-width: none; margin: 14px 0 }
        main > div { display: grid; grid-template-columns: repeat(4, 1fr); gap: 24px }
        main > div > div { font-size: 22px; text-align: center } canvas { width: 100% }`;
    document.head.append(style);
}"""


def pictures(page: Page, report: Path) -> dict[str, bytes]:
    """The pictures by the names of their files."""
    images = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": 900, "height": 700})
        _open(page, report)
        page.evaluate(FIGURE)
        images[f"heads-{scheme}.png"] = page.locator("#figure-1").screenshot()
        page.evaluate(COMPILED)
        images[f"compiled-{scheme}.png"] = page.locator("#figure-6").screenshot()
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1200, "height": 630})
    _open(page, report)
    page.evaluate(CARD)
    images["card.png"] = page.screenshot()
    return images


def _open(page: Page, report: Path) -> None:
    """The report with a kernel that needs all its heads."""
    page.goto(report.resolve().as_uri())
    page.select_option("#preset", KERNEL)
    page.wait_for_function("document.querySelector('#heads-1 > div')?.textContent.startsWith('−4')")


def draw(report: Path, folder: Path) -> None:
    """Write the pictures into a folder."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None or not report.is_file():
        what = f"{report} is not there; run make verify" if path else "Chromium is not installed"
        sys.exit(f"draw_pages: {what}")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        images = pictures(browser.new_page(), report)
        browser.close()
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in images.items():
        write_file(folder / name, content)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--report", type=Path, default=ROOT / "build" / "report" / "index.html")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "pictures")
    args = parser.parse_args()
    draw(args.report, args.output)
