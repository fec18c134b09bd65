"""Screenshots of every page of a sample company, and what is wrong with them.

``python -m tests.e2e.gallery --only /jobs --out /tmp/shots`` starts the pages with sample rows, takes a
picture of each at every width, theme and language, and prints findings: errors on the console, violations of
the content security policy, answers of 400 and more, pages that are wider than their window.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from playwright.sync_api import BrowserContext
from playwright.sync_api import Error as BrowserError

from tests.e2e import picture_grids
from tests.e2e.browsers import ACCOUNTS, PASSWORD, browser_started, opened
from tests.e2e.pages import MAIN, Choice, Page
from tests.e2e.sample_product import SampleProduct, sample_product
from tests.e2e.viewers import contexts

if TYPE_CHECKING:
    from playwright.sync_api import Page as Tab

Theme = Literal["light", "dark"]

HEIGHT = 900
#: How the browser asks for each language of the product.
LOCALES = {"en": "en-GB", "zh-hans": "zh-CN"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Appearance:
    """How a page is looked at."""

    width: int
    theme: Theme
    language: str

    def __str__(self) -> str:
        return f"{self.width} {self.theme} {self.language}"


@dataclass(slots=True, kw_only=True)
class Findings:
    """What is wrong, in the order in which it was found."""

    lines: list[str] = field(default_factory=list)

    def add(self, page: Page, appearance: Appearance, what: str) -> None:
        self.lines.append(f"{page.title} [{appearance}]: {what}")


def main() -> int:
    asked = _arguments()
    pages = Choice(prefixes=tuple(asked.only)).pages()
    if asked.main:
        pages = tuple(page for page in pages if page.title in MAIN)
    if not pages:
        print(f"no page begins with {', '.join(asked.only)}", file=sys.stderr)
        return 2
    began = time.monotonic()
    with sample_product() as product:
        print(f"ready after {time.monotonic() - began:.0f} s: {product.url}", flush=True)
        if asked.serve:
            _serve(product)
            return 0
        findings = take(
            product,
            pages=pages,
            appearances=list(_appearances(asked)),
            account=asked.account,
            out=asked.out,
        )
    for line in findings.lines:
        print(line)
    print(f"{len(findings.lines)} findings; pictures in {asked.out}")
    if asked.sheet:
        picture_grids.write(asked.out, into=asked.sheet)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="PREFIX",
        help="of a path or a title; may be given more than once",
    )
    parser.add_argument("--main", action="store_true", help="only the pages of a contact sheet")
    parser.add_argument("--widths", default="1440,390")
    parser.add_argument("--themes", default="light,dark")
    parser.add_argument("--languages", default="en,zh-hans")
    parser.add_argument(
        "--as",
        dest="account",
        choices=ACCOUNTS,
        default="engineer",
        help="who looks (default: engineer)",
    )
    parser.add_argument("--out", type=Path, default=Path("/tmp/ninefold-gallery"))
    parser.add_argument(
        "--sheet",
        type=Path,
        metavar="FOLDER",
        help="write contact sheets of the pictures there as well",
    )
    parser.add_argument(
        "--serve", action="store_true", help="take no picture: keep the pages up until Ctrl-C"
    )
    return parser.parse_args()


def _appearances(asked: argparse.Namespace) -> Iterator[Appearance]:
    themes: list[Theme] = asked.themes.split(",")
    for language, theme, width in itertools.product(
        asked.languages.split(","), themes, map(int, asked.widths.split(","))
    ):
        yield Appearance(width=width, theme=theme, language=language)


def _serve(product: SampleProduct) -> None:
    accounts = ", ".join(f"{name} ({role})" for role, name in ACCOUNTS.items())
    print(f"password “{PASSWORD}”; people: {accounts}\nCtrl-C ends it", flush=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        return


def take(
    product: SampleProduct,
    *,
    pages: tuple[Page, ...],
    appearances: list[Appearance],
    account: str,
    out: Path,
) -> Findings:
    """Pictures in ``out``, named ``<title>-<width>-<theme>-<language>.png``; and what is wrong."""
    out.mkdir(parents=True, exist_ok=True)
    findings = Findings()
    with browser_started() as browser:
        for appearance in appearances:
            with contexts(
                browser,
                product,
                account=account,
                locale=LOCALES[appearance.language],
                color_scheme=appearance.theme,
                viewport={"width": appearance.width, "height": HEIGHT},
            ) as viewers:
                for page in pages:
                    context = viewers[page.viewer]
                    _picture(
                        context,
                        product,
                        page=page,
                        appearance=appearance,
                        out=out,
                        findings=findings,
                    )
    return findings


def _picture(
    context: BrowserContext,
    product: SampleProduct,
    *,
    page: Page,
    appearance: Appearance,
    out: Path,
    findings: Findings,
) -> None:
    def found(what: str) -> None:
        findings.add(page, appearance, what)

    try:
        with opened(context, page.address(product.names), found=found) as tab:
            if page.wait_for:
                tab.wait_for_selector(page.wait_for, timeout=5_000)
            _overflow(tab, found=found)
            name = f"{page.title}-{appearance.width}-{appearance.theme}-{appearance.language}.png"
            tab.screenshot(path=out / name, full_page=True)
    except BrowserError as error:
        found(str(error).splitlines()[0])


def _overflow(tab: Tab, *, found: object) -> None:
    size = tab.evaluate(
        "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    if size[0] > size[1] and callable(found):
        found(f"is {size[0]} px wide in a window of {size[1]} px")


if __name__ == "__main__":
    sys.exit(main())
