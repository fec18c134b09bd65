"""Archives of a folder with the program of a script job."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from ninefold_client.client import Client
from ninefold_client.errors import ApiError, NinefoldError

#: Patterns as in ``.gitignore``, of the folder.
IGNORE_FILE = ".ninefoldignore"
#: Left out always.
IGNORED = (".git/", "__pycache__/", ".venv/", "venv/", "node_modules/", "*.pyc", IGNORE_FILE)
_LARGEST_SHOWN = 3
_CONTENT_TOO_LARGE = 413


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeArchive:
    """A folder as ``.tar.gz``: the same bytes for the same files."""

    content: bytes
    #: Relative path → size in bytes.
    files: dict[str, int]


def pack_folder(folder: Path) -> CodeArchive:
    """Pack the files of a folder, but those that ``IGNORED`` and its ``.ninefoldignore`` name.

    :raises NinefoldError: if there is no file, one cannot be read, or a symbolic link leads out of the folder.
    """
    root = folder.resolve()
    if not root.is_dir():
        raise NinefoldError(f"{folder} is not a folder; name one with --folder")
    files: dict[str, int] = {}
    packed = io.BytesIO()
    try:
        with (
            gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
            tarfile.open(fileobj=compressed, mode="w") as archive,
        ):
            for path in _files_of(root):
                content = (root / path).read_bytes()
                entry = tarfile.TarInfo(path)
                entry.size = files[path] = len(content)
                entry.mode = 0o755 if (root / path).stat().st_mode & stat.S_IXUSR else 0o644
                archive.addfile(entry, io.BytesIO(content))
    except OSError as error:
        raise NinefoldError(f"{error.filename} cannot be read: {error.strerror}") from error
    if not files:
        raise NinefoldError(f"{folder} has no file to upload; name the program's with --folder")
    return CodeArchive(content=packed.getvalue(), files=files)


def upload_code(client: Client, folder: Path, *, team: str = "") -> str:
    """Upload the folder and return the uid of its archive, the ``code`` of a script job.

    :param team: slug or uid of the owning team; empty: the only team of the user.
    :raises NinefoldError: as :func:`pack_folder`, and if the archive is larger than the server takes.
    """
    archive = pack_folder(folder)
    fields = {"team": team} if team else {}
    try:
        stored = client.upload("code", file=("code.tar.gz", archive.content), fields=fields)
    except ApiError as error:
        if error.status != _CONTENT_TOO_LARGE:
            raise
        largest = sorted(archive.files.items(), key=lambda each: -each[1])[:_LARGEST_SHOWN]
        named = ", ".join(f"{path} ({size:,} bytes)" for path, size in largest)
        raise NinefoldError(
            f"the archive of {folder} has {len(archive.content):,} bytes: {error}. Largest files: "
            f"{named}. Leave files out with patterns in {IGNORE_FILE}"
        ) from error
    return str(stored["uid"])


def _files_of(root: Path) -> Iterator[str]:
    """Relative paths of the files, in order."""
    own = root / IGNORE_FILE
    try:
        patterns = own.read_text(encoding="utf-8").splitlines() if own.is_file() else []
    except UnicodeDecodeError as error:
        raise NinefoldError(f"{own} is not UTF-8: {error}") from error
    ignored = GitIgnoreSpec.from_lines([*IGNORED, *patterns])
    pending = [root]
    while pending:
        folder = pending.pop()
        found = []
        for path in sorted(folder.iterdir(), reverse=True):
            relative = path.relative_to(root).as_posix()
            is_folder = path.is_dir() and not path.is_symlink()
            if ignored.match_file(f"{relative}/" if is_folder else relative):
                continue
            if is_folder:
                if not (path / "pyvenv.cfg").is_file():  # A virtual environment of any name.
                    pending.append(path)
            elif path.is_symlink() and not _is_file_within(path, root):
                raise NinefoldError(
                    f"{relative} is a symbolic link to {path.readlink()}; only links to files of the folder "
                    f"are packed. Leave it out with {IGNORE_FILE}"
                )
            elif path.is_file():
                found.append(relative)
        yield from reversed(found)


def _is_file_within(link: Path, root: Path) -> bool:
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):
        # It is broken, or leads to itself.
        return False
    return target.is_file() and target.is_relative_to(root)
