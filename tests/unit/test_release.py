"""``make release``: what it refuses, and what it commits."""

from __future__ import annotations

import shutil
import subprocess
from datetime import date
from pathlib import Path

import pytest

from tests import release
from tests.release import COPIES, ROOT, ReleaseRefused, create_release, current_version

DAY = date(2027, 1, 31)
CURRENT = current_version(ROOT)
CHANGELOG = """\
# Changelog

## [Unreleased]

### Added

- A wheel.

## [0.0.9] - 2026-01-01

- The first version.
"""


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", *arguments],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the files of this checkout that name the version."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@example.com")
    for name in COPIES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / release.CHANGELOG).write_text(CHANGELOG)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "start")
    return tmp_path


def test_every_file_names_the_version_of_the_project() -> None:
    assert release.files_with_version(ROOT, current=CURRENT, version=CURRENT).keys() == set(COPIES)


def test_a_release_is_a_commit_with_an_annotated_tag_and_the_next_version_another(
    root: Path,
) -> None:
    assert create_release(root=root, version="9.8.7", day=DAY) == "v9.8.7"
    assert current_version(root) == "9.8.8.dev0"
    assert git(root, "log", "--format=%s").splitlines()[:2] == [
        "release: set the development version 9.8.8.dev0",
        "release: 9.8.7",
    ]
    assert set(git(root, "show", "--name-only", "--format=").split()) == set(COPIES)
    assert git(root, "status", "--porcelain") == ""
    git(root, "checkout", "--quiet", "v9.8.7")
    assert current_version(root) == "9.8.7"
    changelog = (root / release.CHANGELOG).read_text()
    assert "## [Unreleased]\n\n## [9.8.7] - 2027-01-31\n\n### Added\n\n- A wheel.\n" in changelog
    assert changelog.endswith("\n\n## [0.0.9] - 2026-01-01\n\n- The first version.\n")
    assert git(root, "log", "--format=%s").splitlines()[0] == "release: 9.8.7"
    assert git(root, "cat-file", "-t", "v9.8.7") == "tag\n"
    assert git(root, "tag", "-l", "--format=%(contents)", "v9.8.7").startswith(
        "Ninefold 9.8.7\n\n### Added\n\n- A wheel."
    )
    assert set(git(root, "show", "--name-only", "--format=").split()) == {
        *COPIES,
        release.CHANGELOG,
    }
    with pytest.raises(ReleaseRefused, match=r"\[Unreleased\]' of CHANGELOG.md has no entry"):
        create_release(root=root, version="9.9.0", day=DAY)


def test_the_version_in_development_is_released_under_its_number(root: Path) -> None:
    for name, text in release.files_with_version(
        root, current=CURRENT, version="9.2.0.dev0"
    ).items():
        (root / name).write_text(text)
    git(root, "commit", "--quiet", "--all", "--message", "a development version")
    with pytest.raises(ReleaseRefused, match=r"9\.1\.0; it must be later than the current 9\.2\.0"):
        create_release(root=root, version="9.1.0", day=DAY)
    create_release(root=root, version="9.2.0", day=DAY)
    assert current_version(root) == "9.3.0.dev0"


def test_what_does_not_permit_a_release_is_named_and_changes_nothing(root: Path) -> None:
    def refused(version: str) -> str:
        with pytest.raises(ReleaseRefused) as refusal:
            create_release(root=root, version=version, day=DAY)
        return str(refusal.value)

    assert refused("").startswith("VERSION is ''; it must be three numbers")
    assert refused("1.0").startswith("VERSION is '1.0'; it must be three numbers")
    assert refused("9.1.0.dev0").startswith("VERSION is '9.1.0.dev0'; it must be three numbers")
    assert refused("0.0.9") == f"VERSION is 0.0.9; it must be later than the current {CURRENT}"
    git(root, "tag", "v9.0.0")
    assert refused("9.0.0").startswith("the tag v9.0.0 exists already")
    (root / "notes.txt").write_text("new")
    assert refused("9.1.0").startswith("the working tree has 1 uncommitted files (notes.txt)")
    (root / "notes.txt").unlink()

    (root / release.CHANGELOG).write_text("# Changelog\n")
    git(root, "commit", "--quiet", "--all", "--message", "no section")
    assert "has no section '## [Unreleased]'" in refused("9.1.0")

    (root / release.CHANGELOG).write_text(CHANGELOG)
    (root / "docker/Dockerfile").write_text("FROM scratch\n")
    git(root, "commit", "--quiet", "--all", "--message", "no version")
    assert "docker/Dockerfile has " in refused("9.1.0")

    git(root, "checkout", "--quiet", "HEAD~2", "--", "docker/Dockerfile")
    git(root, "commit", "--quiet", "--message", "the version again")
    hook = root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho a check failed >&2\nexit 1\n")
    hook.chmod(0o755)
    assert refused("9.1.0") == "git commit failed: a check failed"
    assert git(root, "status", "--porcelain") == ""
    assert current_version(root) == CURRENT
