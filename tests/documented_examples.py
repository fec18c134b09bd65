"""Commands and documents of ``docs``, as they are printed there, for the tests that run or validate them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMAND_LINE = ROOT / "docs" / "cli.md"
GITOPS = ROOT / "docs" / "gitops"
#: Jobs of continuous integration that run the command line.
CI_FILES = (GITOPS / "github-actions.yaml", GITOPS / "gitlab-ci.yaml")


def fenced_blocks(page: Path, heading: str = "", *, language: str = "") -> list[str]:
    """Return the fenced blocks of a language below a heading of the second level; by default of the whole page."""
    text = page.read_text(encoding="utf-8")
    if heading:
        sections = re.split(r"^## ", text, flags=re.MULTILINE)
        (text,) = (part for part in sections if part.startswith(f"{heading}\n"))
    found = re.findall(r"^( *)```(\w*)\n(.*?)^ *```$", text, flags=re.MULTILINE | re.DOTALL)
    return [
        re.sub(rf"^{indent}", "", block, flags=re.MULTILINE)
        for indent, of, block in found
        if of == language
    ]


def documents_of_pages() -> dict[str, str]:
    """Return each text with documents of ``apply`` in ``docs``, by where it is."""
    found = {
        f"{page.relative_to(ROOT)}, block {number}": block
        for page in sorted((ROOT / "docs").rglob("*.md"))
        for number, block in enumerate(fenced_blocks(page, language="yaml"), start=1)
        if "apiVersion: ninefold/" in block
    }
    files = sorted((GITOPS / "company").rglob("*.yaml"))
    return found | {str(file.relative_to(ROOT)): file.read_text() for file in files}
