"""The wheel in an environment without the checkout: everything that is read at run time comes from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.terms import tracked

ROOT = Path(__file__).resolve().parents[3]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSION = PYPROJECT["project"]["version"]

#: Prints what an installed product finds, as JSON.
INSPECTION = """
import importlib, json
from importlib.resources import files
from django.conf import settings
from django.contrib.staticfiles import finders
from django.template.loader import get_template
from django.utils import translation
from apps.models.selectors.catalog import published_catalog
from controlplane.domain.common.reasons import Reason
from controlplane.ports import adapter_registry
from controlplane.web.reasons import render_reason

packages = "apps config controlplane gateway http_server launcher ninefold_runtime".split()
with translation.override("zh-hans"):
    texts = [translation.gettext("Home"), render_reason(Reason("launch.state.running", "running"))]
print(json.dumps({
    "folders": [importlib.import_module(name).__file__ for name in packages],
    "template": get_template("base.html").origin.name,
    "static": [finders.find(name) for name in ("css/ninefold.css", "unfold/css/styles.css")],
    "texts": texts,
    "models": len(published_catalog().entries),
    "chips": len(adapter_registry.all_chips()),
    "engine_lock": len(adapter_registry.engine_by_name("transformers").environment().lock),
    "sample": files("ninefold_runtime.samples").joinpath("data/addresses.jsonl").is_file(),
}))
"""

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The wheel in a virtual environment whose other packages are those of this one."""

    wheel: Path
    folder: Path

    @property
    def environment(self) -> Path:
        return self.folder / "venv"

    def server(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """``ninefold-server``, in a folder of its own, with nothing of this process's environment."""
        return subprocess.run(
            [self.environment / "bin" / "ninefold-server", *arguments],
            cwd=self.folder,
            env={
                "PATH": os.defpath,
                "HOME": str(self.folder),
                "NINEFOLD_HOME": str(self.folder / "data"),
                **variables,
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def manage(self, *arguments: str) -> str:
        """The output of a management command, which has to succeed."""
        done = self.server(
            "manage",
            *arguments,
            NINEFOLD_SECRET_KEY="only-for-this-test",
            NINEFOLD_ENCRYPTION_KEY="b25seS1mb3ItdGVzdHMtMzItYnl0ZXMtbG9uZy0hISE=",
            NINEFOLD_GATEWAY_TOKEN="only-for-this-test",
            NINEFOLD_DATABASE_URL="postgresql:///ninefold?host=/nonexistent",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def build(target: str, *, folder: Path) -> Path:
    """The file that ``python -m build`` writes too, by the same backend."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target]
    subprocess.run(
        [*command, "--directory", str(folder)], cwd=ROOT, check=True, capture_output=True
    )
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("installed")
    wheel = build("wheel", folder=tmp_path_factory.mktemp("wheel"))
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    uv = Path(sys.executable).with_name("uv")
    subprocess.run(
        [uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--link-mode", "copy",
         "--python", environment / "bin" / "python", wheel],
        check=True,
    )  # fmt: skip
    # Only the folder: .pth files in it, such as the one that names the checkout, are not read.
    (packages,) = environment.glob("lib/python3*/site-packages")
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return Installation(wheel=wheel, folder=folder)


def wheel_name(path: str) -> str:
    """Where the wheel has a file of the checkout."""
    if path.startswith(("static/", "templates/")):
        return f"config/resources/{path}"
    return path.removeprefix("platform/")


def test_the_wheel_has_every_file_of_the_product(installation: Installation) -> None:
    committed = {wheel_name(path) for path in tracked("apps", "platform", "static", "templates")}
    assert len(committed) > 1000
    packed = set(zipfile.ZipFile(installation.wheel).namelist())
    assert committed - packed == set()
    others = {name for name in packed - committed if not name.startswith(f"ninefold-{VERSION}.")}
    assert {name for name in others if not name.endswith(".py")} == set()


def test_a_source_distribution_has_what_the_wheel_is_built_from(tmp_path: Path) -> None:
    with tarfile.open(build("sdist", folder=tmp_path)) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    sources = {*tracked("apps", "platform", "static", "templates"), "pyproject.toml", "LICENSE"}
    assert sources - packed == set()


def test_the_wheel_requires_nothing_that_only_builds_or_tests(installation: Installation) -> None:
    with zipfile.ZipFile(installation.wheel) as wheel:
        metadata = wheel.read(f"ninefold-{VERSION}.dist-info/METADATA").decode()
    required = [
        line for line in metadata.splitlines()
        if line.startswith("Requires-Dist: ") and "extra ==" not in line
    ]  # fmt: skip
    assert len(required) == len(PYPROJECT["project"]["dependencies"])
    assert not [line for line in required if "hatchling" in line or "editables" in line]


def test_an_installed_product_finds_its_files_in_the_wheel(installation: Installation) -> None:
    assert installation.server("--version").stdout == f"ninefold-server {VERSION}\n"
    assert "identified no issues" in installation.manage("check")

    found: dict[str, Any] = json.loads(installation.manage("shell", "-v", "0", "-c", INSPECTION))
    inside = str(installation.environment)
    assert [path for path in found["folders"] if not path.startswith(inside)] == []
    assert found["template"].startswith(inside)
    assert found["static"][0].startswith(inside)
    assert found["static"][1], "files of other packages are found too"
    assert found["texts"] == ["首页", "运行中"]
    assert found["models"] > 100
    assert found["chips"] > 50
    assert found["engine_lock"] > 1000
    assert found["sample"]


def test_an_installed_product_names_its_own_commands(installation: Installation) -> None:
    stopped = installation.server("status")
    assert stopped.returncode == 3
    assert f"(files in {installation.folder}/data); start it with: ninefold-server up" in (
        stopped.stdout
    )
    unset = installation.server("manage", "check")
    assert unset.returncode == 1
    assert unset.stderr.startswith(
        "ninefold: set NINEFOLD_SECRET_KEY, or run `ninefold-server up` once"
    )
    # Without NINEFOLD_HOME: never below the folder of the package.
    assert f"{installation.environment}/" not in installation.server("--help").stdout
