"""``make release VERSION=x.y.z``: date the changelog, set the version, commit and tag; nothing is pushed.

A second commit then sets the next development version, so that later builds differ from the release and replace it
in an upgrade. The version of the product is ``project.version`` in ``pyproject.toml``, which the product reads
from its installed package; :data:`COPIES` are the files that cannot read it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PROJECT = "pyproject.toml"
CHANGELOG = "CHANGELOG.md"
#: File → lines that contain the version; ``{}`` stands for it.
COPIES: Mapping[str, tuple[str, ...]] = {
    PROJECT: ('version = "{}"',),
    "client/pyproject.toml": ('version = "{}"',),
    "docker/Dockerfile": (
        "docker build --file docker/Dockerfile --tag ninefold:{} .",
        'org.opencontainers.image.version="{}"',
    ),
    "docker/engines/mindie/Dockerfile": ('org.opencontainers.image.version="{}"',),
    "docker/engines/transformers/Dockerfile": (
        "--tag ninefold-engine-transformers:{} .",
        'org.opencontainers.image.version="{}"',
    ),
    "docker/compose.yaml": ("image: ninefold:${{NINEFOLD_VERSION:-{}}}",),
    "docker/kubernetes/agent/kustomization.yaml": ("newTag: {}",),
    "docker/kubernetes/overlays/production/kustomization.yaml": ("newTag: {}",),
    "docker/kubernetes/overlays/small/kustomization.yaml": ("newTag: {}",),
    "docs/settings.md": ("| `NINEFOLD_VERSION` | `{}` |",),
}
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_UNRELEASED = "## [Unreleased]"


class ReleaseRefused(Exception):
    """A release, or a step of it, was not created; the message says what to do. No file has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseNotes:
    """A changelog with the section of the new version, and the text of that section."""

    changelog: str
    section: str


def current_version(root: Path) -> str:
    """``project.version`` of the checkout."""
    document = tomllib.loads((root / PROJECT).read_text(encoding="utf-8"))
    version: str = document["project"]["version"]
    return version


def require_later_version(version: str, *, current: str) -> None:
    """Return if ``version`` can follow ``current``.

    :raises ReleaseRefused: if it is not three numbers, or not later.
    """
    if not _VERSION.fullmatch(version):
        raise ReleaseRefused(
            f"VERSION is {version!r}; it must be three numbers: make release VERSION=0.2.0"
        )
    if Version(version) <= Version(current):
        raise ReleaseRefused(f"VERSION is {version}; it must be later than the current {current}")


def next_development_version(version: str) -> str:
    """The version of what follows a release: of the next minor one, or after a patch release of the next patch."""
    major, minor, patch = Version(version).release
    if patch:
        return f"{major}.{minor}.{patch + 1}.dev0"
    return f"{major}.{minor + 1}.0.dev0"


def dated_changelog(changelog: str, *, version: str, day: date) -> ReleaseNotes:
    """Move the entries of the section Unreleased to one of that version and day.

    :raises ReleaseRefused: if there is no such section, or it has no entry.
    """
    before, heading, rest = changelog.partition(f"\n{_UNRELEASED}\n")
    if not heading:
        raise ReleaseRefused(f"{CHANGELOG} has no section {_UNRELEASED!r}")
    section, next_heading, older = rest.partition("\n## [")
    if not re.search(r"^- \S", section, re.MULTILINE):
        raise ReleaseRefused(
            f"the section {_UNRELEASED!r} of {CHANGELOG} has no entry; list there what has changed"
        )
    title = f"## [{version}] - {day.isoformat()}"
    if f"\n## [{version}]" in rest:
        raise ReleaseRefused(f"{CHANGELOG} has a section for {version} already")
    return ReleaseNotes(
        changelog=f"{before}{heading}\n{title}\n{section}{next_heading}{older}",
        section=section.strip(),
    )


def files_with_version(root: Path, *, current: str, version: str) -> dict[str, str]:
    """The content of each file of :data:`COPIES` with ``version`` in place of ``current``.

    :raises ReleaseRefused: if a file lacks one of its lines.
    """
    changed = {}
    for name, lines in COPIES.items():
        text = (root / name).read_text(encoding="utf-8")
        for line in lines:
            found = line.format(current)
            if text.count(found) != 1:
                raise ReleaseRefused(
                    f"{name} has {found!r} {text.count(found)} times, expected once; "
                    "correct it, or COPIES in tests/release.py"
                )
            text = text.replace(found, line.format(version))
        changed[name] = text
    return changed


def create_release(*, root: Path, version: str, day: date) -> str:
    """Commit the files as ``release: <version>``, tag the commit, and commit the next development version.

    :return: the name of the tag.
    :raises ReleaseRefused: if the version, the working tree or the changelog does not permit it, or git fails.
    """
    current = current_version(root)
    require_later_version(version, current=current)
    changes = _git(root, "status", "--porcelain").splitlines()
    if changes:
        listed = ", ".join(line[3:] for line in changes[:5])
        raise ReleaseRefused(
            f"the working tree has {len(changes)} uncommitted files ({listed}); commit or stash them"
        )
    tag = f"v{version}"
    if _git(root, "tag", "--list", tag):
        raise ReleaseRefused(f"the tag {tag} exists already; choose a later VERSION")
    notes = dated_changelog(
        (root / CHANGELOG).read_text(encoding="utf-8"), version=version, day=day
    )
    files = files_with_version(root, current=current, version=version)
    files[CHANGELOG] = notes.changelog
    _commit(root, files, message=f"release: {version}")
    _git(root, "tag", "--annotate", "--cleanup=verbatim", "--message",
         f"Ninefold {version}\n\n{notes.section}\n", tag)  # fmt: skip
    following = next_development_version(version)
    try:
        _commit(
            root,
            files_with_version(root, current=version, version=following),
            message=f"release: set the development version {following}",
        )
    except ReleaseRefused as refusal:
        raise ReleaseRefused(
            f"{tag} is committed and tagged, but the version {following} could not be set ({refusal}); "
            "set it in the files of COPIES in tests/release.py and commit them"
        ) from refusal
    return tag


def _commit(root: Path, files: Mapping[str, str], *, message: str) -> None:
    """Write and commit the files.

    :raises ReleaseRefused: if git fails; then the files are as they were.
    """
    try:
        for name, text in files.items():
            (root / name).write_text(text, encoding="utf-8")
        _git(root, "commit", "--quiet", "--message", message, "--", *files)
    except ReleaseRefused:
        _git(root, "restore", "--staged", "--worktree", "--", *files)
        raise


def _git(root: Path, *arguments: str) -> str:
    """:raises ReleaseRefused: with the message of git if it fails."""
    done = subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ReleaseRefused(f"git {arguments[0]} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout.rstrip("\n")


def main(arguments: list[str]) -> int:
    version = arguments[0] if arguments else ""
    try:
        tag = create_release(root=ROOT, version=version, day=datetime.now(UTC).date())
    except ReleaseRefused as refusal:
        sys.stderr.write(f"release: {refusal}\n")
        return 1
    sys.stdout.write(
        f"committed and tagged {tag}, and set the development version {current_version(ROOT)} after it\n"
        f"publish it: git push origin HEAD {tag}\n"
        f"build its wheels: git checkout {tag} && make wheel\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
