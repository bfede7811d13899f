"""A browser that has read the whole page before a test looks at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver.remote.webdriver import WebDriver


def visit(browser: WebDriver, address: str) -> None:
    """Open a page and wait until its scripts have run: on a busy machine `get` may return before that."""
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(address)
    ready = "return document.readyState === 'complete' && (document.URL === 'about:blank') === arguments[0]"
    WebDriverWait(browser, 60).until(lambda _: browser.execute_script(ready, address == "about:blank"))
