"""A real browser, somebody logged in, and a page that is opened and listened to."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from playwright.sync_api import (
    Browser,
    BrowserContext,
    CDPSession,
    ConsoleMessage,
    Page,
    Response,
    sync_playwright,
)
from playwright.sync_api import TimeoutError as TookTooLong

#: Preferred first: the headless shell renders without a window system, in about half the processor time.
BROWSERS = ("chromium-headless-shell", "chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PASSWORD = "open sesame"
#: Who looks, by the role that they have in Maps (or in the company).
ACCOUNTS = {
    "engineer": "ada",
    "administrator": "wei",
    "viewer": "vera",
    "queue_admin": "quinn",
    "operator": "otto",
    "outsider": "noor",
    "newcomer": "nova",
    "admin": "admin",
}
#: What htmx writes as an error of a request that the page itself took back, as one does that is left while a live
#: part of it is being fetched. What fails by itself has words of its own.
REQUESTS_TAKEN_BACK = ("htmx:afterRequest", "htmx:sendAbort")
#: Milliseconds without a request that a page is given to come to rest, as live ones never quite do.
_REST = 2_500.0


class NoBrowser(RuntimeError):
    """None of :data:`BROWSERS` is installed."""


@contextmanager
def browser_started() -> Iterator[Browser]:
    """:raises NoBrowser: if there is none."""
    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    if chromium is None:
        raise NoBrowser(
            f"Chromium was not found; install it (Debian: apt-get install {BROWSERS[0]})"
        )
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield started
        started.close()


def logged_in(context: BrowserContext, *, name: str) -> None:
    """By the form, as a person does it."""
    page = context.new_page()
    page.goto("/login")
    page.locator("input[name=username]").fill(name)
    page.locator("input[name=password]").fill(PASSWORD)
    page.locator("input[name=password]").press("Enter")
    page.wait_for_url(lambda url: not url.endswith("/login"))
    page.close()


@contextmanager
def opened(
    context: BrowserContext,
    address: str,
    *,
    found: Callable[[str], None],
    session: Callable[[CDPSession], None] | None = None,
) -> Iterator[Page]:
    """The page, once its network is idle.

    :param found: called with every error of the browser's console and every response of 400 and more.
    :param session: called with a DevTools session of the tab before it loads.
    """
    page = context.new_page()
    if session is not None:
        session(context.new_cdp_session(page))

    def said(message: ConsoleMessage) -> None:
        # A bad answer is told by itself, with its address.
        if message.type == "error" and not message.text.startswith(
            ("Failed to load resource", *REQUESTS_TAKEN_BACK)
        ):
            found(f"console: {message.text}")

    page.on("console", said)
    page.on("pageerror", lambda error: found(f"script: {error}"))

    def answered(response: Response) -> None:
        if response.status >= 400:
            found(f"{response.request.method} {response.url} answered {response.status}")

    page.on("response", answered)
    page.goto(address)
    with suppress(TookTooLong):
        page.wait_for_load_state("networkidle", timeout=_REST)
    yield page
    page.close()
