"""Pages of ``docs`` that name code or settings agree with them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Abbreviations of folders in the call chain of ``docs/architecture.md``.
FOLDERS = {
    "jobs/": "apps/jobs/",
    "quotas/": "apps/quotas/",
    "core/": "platform/controlplane/",
    "local/": "platform/controlplane/adapters/clusters/local/",
    "runtime/": "platform/ninefold_runtime/",
}


def defined_names(path: Path) -> set[str]:
    """Classes, functions and methods of a module; methods also as ``Class.method``."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if isinstance(each, ast.FunctionDef))
            names.update(f"{node.name}.{each.name}" for each in methods)
    return names


def test_the_call_chain_names_code_that_exists() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", page, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 26))
    files: set[Path] = set()
    missing: list[str] = []
    for number, code in rows:
        for part in code.split("; "):
            name, *functions = re.findall(r"`([^`]+)`", part)
            folder = name[: name.index("/") + 1]
            path = ROOT / (FOLDERS.get(folder, folder) + name.removeprefix(folder))
            known = defined_names(path) if path.is_file() else set()
            missing += [f"step {number}: {name} {each}" for each in functions if each not in known]
            files.add(path)
    assert not missing
    assert f"**Files:** {len(files)}," in page


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    broken: list[str] = []
    for page in pages:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            linked = page.parent / path if path else page
            if not linked.exists() or (anchor and anchor not in anchors(linked)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken
