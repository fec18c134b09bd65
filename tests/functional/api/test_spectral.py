"""The OpenAPI document is clean in Spectral, the linter of OpenAPI documents."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.api_document import api_document_json
from tests.clients.environment import installed_environment

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

RULES = Path(__file__).with_name(".spectral.yaml")
#: A guard against hanging, in seconds.
WITHIN = 600.0


def lint(document: bytes, *, folder: Path) -> list[str]:
    """``path: rule: message`` of each finding, warnings included."""
    written = folder / "openapi.json"
    written.write_bytes(document)
    environment = installed_environment()
    done = subprocess.run(
        [
            *(environment.node, environment.script("spectral")),
            *("lint", written, "--format", "json", "--quiet"),
            *("--ruleset", RULES, "--fail-severity", "hint"),
        ],
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    found = json.loads(done.stdout)
    assert bool(found) == bool(done.returncode), done.stderr
    return [
        f"{'.'.join(map(str, each['path']))}: {each['code']}: {each['message']}" for each in found
    ]


def test_the_document_is_clean(tmp_path: Path) -> None:
    assert lint(api_document_json(), folder=tmp_path) == []


def test_an_invalid_document_is_refused(tmp_path: Path) -> None:
    """So that the test above can fail."""
    document = {"openapi": "3.1.0", "info": {"title": "without a version"}, "paths": {}}
    found = lint(json.dumps(document).encode(), folder=tmp_path)
    assert any("oas3-schema" in each and "version" in each for each in found), found
