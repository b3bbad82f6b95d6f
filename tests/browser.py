"""Chromium, driven through Playwright, for the tests of pages."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser, one for all tests of a worker."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def new_page(chromium: Any) -> Iterator[Any]:
    """Opens pages; one that throws, or reports an error on its console, fails the test."""
    problems: list[str] = []
    contexts = []

    def opened(**options: Any) -> Any:
        contexts.append(chromium.new_context(**options))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console", lambda message: message.type == "error" and problems.append(message.text)
        )
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def serious(page: Any) -> list[str]:
    """What axe-core finds serious or critical on a page."""
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['target']}: {node.get('failureSummary')}"
        for each in violations
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def wait_until(page: Any, expression: str, argument: Any = None) -> None:
    """Wait until an expression is true in the page, which lets nothing evaluate text by itself.

    So `page.wait_for_function` fails where it has to look more than once.
    """
    for _ in range(1500):
        if page.evaluate(expression, argument):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"after 30 s it is still not so: {expression}")
