"""The OpenAPI document is clean in Spectral, the linter of OpenAPI documents."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

PACKAGE = Path(__file__).resolve().parents[2] / "spectral"
#: A guard against hanging, in seconds.
WITHIN = 600.0


@pytest.fixture(scope="module")
def spectral() -> Path:
    """The locked version of its command, installed once for each lock file in the user's cache."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    digest = hashlib.sha256((PACKAGE / "package-lock.json").read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ninefold"
    folder = cache / f"spectral-{digest}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache) as staging:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(PACKAGE / name, staging)
            installed = subprocess.run(
                [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
                cwd=staging,
                capture_output=True,
                text=True,
                timeout=WITHIN,
                check=False,
            )
            if installed.returncode:
                pytest.skip(f"npm cannot install Spectral: {installed.stderr.strip()[-300:]}")
            shutil.copytree(staging, folder, symlinks=True)
    return folder / "node_modules" / ".bin" / "spectral"


def lint(spectral: Path, document: bytes, *, folder: Path) -> list[str]:
    """``path: rule: message`` of each finding, warnings included."""
    written = folder / "openapi.json"
    written.write_bytes(document)
    done = subprocess.run(
        [
            *(spectral, "lint", written, "--format", "json", "--quiet"),
            *("--ruleset", PACKAGE / ".spectral.yaml", "--fail-severity", "hint"),
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


def test_the_document_is_clean(spectral: Path, tmp_path: Path) -> None:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    document = OpenApiJsonRenderer().render(schema, renderer_context={})
    assert lint(spectral, document, folder=tmp_path) == []


def test_an_invalid_document_is_refused(spectral: Path, tmp_path: Path) -> None:
    """So that the test above can fail."""
    document = {"openapi": "3.1.0", "info": {"title": "without a version"}, "paths": {}}
    found = lint(spectral, json.dumps(document).encode(), folder=tmp_path)
    assert any("oas3-schema" in each and "version" in each for each in found), found
