"""Images for a machine without a registry: one that holds a pod's namespaces, and one with nothing in it."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAUSE = "ninefold.test/pause:1"
#: Its pods mount this machine's programs.
HOST = "ninefold.test/host:1"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Folders that such a pod mounts from the machine, read-only.
HOST_FOLDERS = ("/usr", "/bin", "/lib", "/lib64", "/etc/ssl", "/etc/alternatives")

#: Options of a cluster whose pods run so.
PROFILE: Mapping[str, Any] = {
    "image": HOST,
    "pull_policy": "Never",
    "python": "/usr/bin/python3",
    "mounts": [{"host_path": folder, "at": folder} for folder in HOST_FOLDERS],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file or folder of an image; it belongs to root."""

    text: str = ""
    #: In place of ``text``.
    content: bytes = b""
    mode: int = 0o644
    folder: bool = False


def write(path: Path, *, pause: Path) -> None:
    """An archive with both, as ``ctr images import`` takes it."""
    folders = (*HOST_FOLDERS, "/tmp", "/etc", "/proc", "/dev", "/sys")
    program = File(content=pause.read_bytes(), mode=0o755)
    write_images(
        path,
        [
            Image(name=PAUSE, files={"/pause": program}, entrypoint=("/pause",)),
            Image(name=HOST, files=dict.fromkeys(folders, File(folder=True))),
        ],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    name: str
    #: By path.
    files: Mapping[str, File]
    entrypoint: tuple[str, ...] = ("/bin/sh",)
    environment: Mapping[str, str] = field(default_factory=lambda: {"PATH": PATH})


def write_images(path: Path, images: Iterable[Image]) -> None:
    """An archive with the images, as ``ctr images import`` takes it."""
    with tarfile.open(path, "w") as archive:
        entries = [_add_image(archive, image) for image in images]
        _add(archive, "manifest.json", json.dumps(entries).encode())


def _add_image(archive: tarfile.TarFile, image: Image) -> dict[str, object]:
    """Its entry in the manifest of the archive."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as inside:
        for path, file in sorted(image.files.items()):
            entry = tarfile.TarInfo(path.lstrip("/"))
            if file.folder:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                inside.addfile(entry)
            else:
                content = file.content or file.text.encode()
                entry.size, entry.mode = len(content), file.mode
                inside.addfile(entry, io.BytesIO(content))
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    settings = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "Entrypoint": list(image.entrypoint),
                "Env": [f"{name}={value}" for name, value in image.environment.items()],
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()
    named = f"{hashlib.sha256(settings).hexdigest()}.json"
    _add(archive, f"{digest}/layer.tar", layer.getvalue())
    _add(archive, named, settings)
    return {"Config": named, "RepoTags": [image.name], "Layers": [f"{digest}/layer.tar"]}


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))
