"""The page on adding a chip shows the very package that the tests install."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "tests" / "plugins" / "ninefold-osprey"
PAGE = ROOT / "docs" / "adding-a-chip.md"
FILES = sorted(
    path.relative_to(PACKAGE).as_posix()
    for path in PACKAGE.rglob("*.[tp][oy]*")
    if path.is_file() and "__pycache__" not in path.parts
)


@pytest.mark.parametrize("name", FILES)
def test_every_file_of_the_example_stands_on_the_page(name: str) -> None:
    shown = dict(re.findall(r"(?ms)^`([\w./]+)`\n\n```\w+\n(.*?)^```$", PAGE.read_text("utf-8")))
    assert set(shown) == set(FILES)
    assert shown[name] == (PACKAGE / name).read_text("utf-8")


def test_every_key_of_a_chip_is_explained() -> None:
    reader = (ROOT / "platform/controlplane/adapters/chips/profiles.py").read_text("utf-8")
    keys = set(re.findall(r'(?:section|top)\.\w+\(\s*"(\w+)"', reader))
    # What is read by the names of fields; the others of a chip have settings of other names.
    keys |= {"title", "visible_devices_variable", "cards_per_node", "rings", "split_evenly"}
    keys |= {"resource", "node_labels", "sources", "resource_patterns", "runtime_variable"}
    page = PAGE.read_text("utf-8")
    assert [key for key in sorted(keys) if key not in page] == []
