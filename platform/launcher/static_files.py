"""Whether static files have to be collected again, told by names, sizes and times alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from launcher.credentials import write_private
from launcher.layout import Layout


def fingerprint(project: Path) -> str:
    """A digest of what ``collectstatic`` reads: the project's files, the packages' versions."""
    digest = hashlib.sha256((project / "requirements.lock").read_bytes())
    for path in sorted(_sources(project)):
        status = path.stat()
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _sources(project: Path) -> Iterator[Path]:
    roots = [project / "static", *(project / "apps").glob("*/static")]
    roots += (project / "platform").glob("**/static")
    yield from (project / "platform" / "config" / "settings").glob("*.py")
    for root in roots:
        yield from (path for path in root.rglob("*") if path.is_file())


def are_collected(layout: Layout, *, wanted: str) -> bool:
    try:
        return _record(layout).read_text().strip() == wanted
    except FileNotFoundError:
        return False


def note_collected(layout: Layout, *, collected: str) -> None:
    write_private(_record(layout), f"{collected}\n")


def _record(layout: Layout) -> Path:
    # Beside the files themselves: whoever deletes them deletes the record too.
    return layout.home / "static" / ".fingerprint"
