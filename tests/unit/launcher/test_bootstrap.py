from __future__ import annotations

import json
import platform
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from launcher import bootstrap
from launcher.bootstrap import (
    DEVELOPMENT,
    PRODUCT,
    ensure_environment,
    expected_record,
    packages_to_install,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "platform" / "launcher").mkdir(parents=True)
    for name in ("requirements.lock", "requirements-dev.lock", "pyproject.toml", bootstrap.UV_LOCK):
        (tmp_path / name).write_text(f"{name}\n")
    return tmp_path


def _installed(project: Path, extent: str) -> None:
    environment = project / ".venv"
    (environment / "bin").mkdir(parents=True, exist_ok=True)
    (environment / "bin" / "python").touch()
    (environment / ".ninefold-lock").write_text(
        json.dumps(expected_record(project=project, extent=extent))
    )


def _to_install(project: Path, requested: str) -> str | None:
    return packages_to_install(project=project, environment=project / ".venv", requested=requested)


def test_a_fresh_clone_needs_what_is_asked_for(project: Path) -> None:
    assert _to_install(project, PRODUCT) == PRODUCT
    assert _to_install(project, DEVELOPMENT) == DEVELOPMENT


@pytest.mark.parametrize("extent", [PRODUCT, DEVELOPMENT])
def test_an_unchanged_environment_needs_nothing(project: Path, extent: str) -> None:
    _installed(project, extent)
    assert _to_install(project, extent) is None


def test_the_developers_environment_serves_the_product_too(project: Path) -> None:
    _installed(project, DEVELOPMENT)
    assert _to_install(project, PRODUCT) is None


def test_the_products_environment_does_not_serve_developers(project: Path) -> None:
    _installed(project, PRODUCT)
    assert _to_install(project, DEVELOPMENT) == DEVELOPMENT


@pytest.mark.parametrize("name", ["requirements.lock", "pyproject.toml", str(bootstrap.UV_LOCK)])
def test_a_changed_input_needs_a_new_installation(project: Path, name: str) -> None:
    _installed(project, PRODUCT)
    (project / name).write_text("changed\n")
    assert _to_install(project, PRODUCT) == PRODUCT


def test_a_changed_developers_lock_keeps_the_developers_packages(project: Path) -> None:
    _installed(project, DEVELOPMENT)
    (project / "requirements-dev.lock").write_text("changed\n")
    assert _to_install(project, PRODUCT) == DEVELOPMENT


def test_a_moved_project_needs_a_new_installation(project: Path) -> None:
    _installed(project, PRODUCT)
    moved = project.with_name(f"{project.name}-moved")
    project.rename(moved)
    assert _to_install(moved, PRODUCT) == PRODUCT


def test_another_python_needs_a_new_installation(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _installed(project, PRODUCT)
    monkeypatch.setattr(platform, "python_version", lambda: "3.12.99")
    assert _to_install(project, PRODUCT) == PRODUCT


def test_an_environment_whose_python_is_gone_counts_as_none(project: Path) -> None:
    _installed(project, PRODUCT)
    (project / ".venv" / "bin" / "python").unlink()
    assert _to_install(project, PRODUCT) == PRODUCT


def test_a_garbled_record_counts_as_none(project: Path) -> None:
    _installed(project, PRODUCT)
    (project / ".venv" / ".ninefold-lock").write_text("{")
    assert _to_install(project, PRODUCT) == PRODUCT


def test_two_at_once_install_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installs: list[str] = []

    def install(*, project: Path, environment: Path, extent: str) -> None:
        installs.append(extent)
        deadline = time.monotonic() + 0.3
        while time.monotonic() < deadline and len(installs) < 2:
            threading.Event().wait(0.01)
        _installed(project, extent)

    monkeypatch.setattr(bootstrap, "_install_packages", install)
    threads = [
        threading.Thread(target=lambda: ensure_environment(project=project, requested=PRODUCT))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert installs == [PRODUCT]


def test_a_python_without_ensurepip_names_the_package_to_install(project: Path) -> None:
    script = Path(bootstrap.__file__).read_text()
    hidden = "import sys; sys.modules['ensurepip'] = None\n"
    target = project / "platform" / "launcher" / "bootstrap.py"
    target.write_text(script.replace("import argparse\n", f"{hidden}import argparse\n", 1))
    done = subprocess.run(
        [sys.executable, "-I", target], capture_output=True, text=True, check=False
    )
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert done.returncode == 1
    assert f"apt-get install python{version}-venv" in done.stderr


def test_a_python_that_is_too_old_is_told_what_would_do(project: Path) -> None:
    script = Path(bootstrap.__file__).read_text()
    target = project / "platform" / "launcher" / "bootstrap.py"
    target.write_text(script.replace("(3, 11)", "(3, 98)").replace("(3, 13)", "(3, 99)"))
    done = subprocess.run(
        [sys.executable, "-I", target], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"this is {platform.python_version()}" in done.stderr
    assert not (project / ".venv").exists()


def test_the_lock_file_of_uv_is_not_world_writable(tmp_path: Path) -> None:
    environment, nothing = tmp_path / "venv", tmp_path / "empty.txt"
    nothing.touch()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    bootstrap._create_uv_lock(environment)
    uv, python = Path(sys.executable).with_name("uv"), environment / "bin" / "python"
    sync = (uv, "pip", "sync", "--offline", "--quiet", "--allow-empty-requirements")
    subprocess.run([*sync, "--python", python, nothing], check=True)
    assert (environment / ".lock").stat().st_mode & 0o022 == 0
