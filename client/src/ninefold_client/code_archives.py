"""Archives of a folder with the program of a script job."""

from __future__ import annotations

import gzip
import hashlib
import io
import stat
import tarfile
import zlib
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
#: Name of an archive, and of the only file of its artifact.
ARCHIVE_FILE = "code.tar.gz"
_LARGEST_SHOWN = 3
_CONTENT_TOO_LARGE = 413
#: Of zlib: a gzip header before the data.
_GZIP = zlib.MAX_WBITS | 16
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeArchive:
    """A folder as ``.tar.gz``: the same bytes for the same files, with the same version of zlib."""

    folder: Path
    content: bytes
    #: Relative path → size in bytes.
    files: dict[str, int]


def pack_folder(folder: Path) -> CodeArchive:
    """Pack the files of a folder, but those that ``IGNORED`` and its ``.ninefoldignore`` name.

    :raises NinefoldError: if there is no file, one cannot be read, or a symbolic link leads out of the folder.
    """
    root = folder.resolve()
    if not root.is_dir():
        raise NinefoldError(f"{folder} is not a folder; name the folder of the program")
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
        raise NinefoldError(f"{folder} has no file to upload; name the folder of the program")
    return CodeArchive(folder=folder, content=packed.getvalue(), files=files)


def upload_code(client: Client, folder: Path, *, team: str = "") -> str:
    """Upload the folder and return the uid of its archive, the ``code`` of a script job.

    :param team: slug or uid of the owning team; empty: the only team of the user.
    :raises NinefoldError: as :func:`pack_folder`, and if the archive is larger than the server takes.
    """
    return upload_archive(client, pack_folder(folder), team=team)


def upload_archive(client: Client, archive: CodeArchive, *, team: str = "") -> str:
    """Upload an archive and return its uid, as :func:`upload_code`."""
    fields = {"team": team} if team else {}
    try:
        stored = client.upload("code", file=(ARCHIVE_FILE, archive.content), fields=fields)
    except ApiError as error:
        if error.status != _CONTENT_TOO_LARGE:
            raise
        largest = sorted(archive.files.items(), key=lambda each: -each[1])[:_LARGEST_SHOWN]
        named = ", ".join(f"{path} ({size:,} bytes)" for path, size in largest)
        raise NinefoldError(
            f"the archive of {archive.folder} has {len(archive.content):,} bytes: {error}. Largest files: "
            f"{named}. Leave files out with patterns in {IGNORE_FILE}"
        ) from error
    return str(stored["uid"])


def is_stored_as(client: Client, archive: CodeArchive, uid: str) -> bool:
    """Return whether the stored archive of that uid has the same files with the same content.

    It is downloaded if it is not the same bytes.
    """
    stored = {one["path"]: one["digest"] for one in client.get(f"artifacts/{uid}")["files"]}
    if stored.get(ARCHIVE_FILE) == f"sha256:{hashlib.sha256(archive.content).hexdigest()}":
        return True
    if ARCHIVE_FILE not in stored:
        return False
    # Another version of zlib compresses the same files to other bytes.
    try:
        found = _digest_of_files(client.stream_bytes(f"artifacts/{uid}/files/{ARCHIVE_FILE}"))
    except (ApiError, zlib.error):
        # Its bytes were removed, or another program has created it.
        return False
    return found == _digest_of_files(iter([archive.content]))


def _digest_of_files(compressed: Iterator[bytes]) -> str:
    """The digest of the archive before its compression."""
    digest, decompressor = hashlib.sha256(), zlib.decompressobj(_GZIP)
    for content in compressed:
        rest = content
        while rest:
            digest.update(decompressor.decompress(rest, _CHUNK))
            rest = decompressor.unconsumed_tail
    digest.update(decompressor.flush())
    return digest.hexdigest()


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
