"""Images for a machine without a registry: one that holds a pod's namespaces, and one with nothing in it."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PAUSE = "ninefold.test/pause:1"
#: Its pods mount this machine's programs.
HOST = "ninefold.test/host:1"
#: Folders that such a pod mounts from the machine, read-only.
HOST_FOLDERS = ("/usr", "/bin", "/lib", "/lib64", "/etc/ssl", "/etc/alternatives")

#: Options of a cluster whose pods run so.
PROFILE: Mapping[str, Any] = {
    "image": HOST,
    "pull_policy": "Never",
    "python": "/usr/bin/python3",
    "mounts": [{"host_path": folder, "at": folder} for folder in HOST_FOLDERS],
}


def write(path: Path, *, pause: Path) -> None:
    """An archive with both, as ``ctr images import`` takes it."""
    host: dict[str, bytes | None] = dict.fromkeys(
        (*HOST_FOLDERS, "/tmp", "/etc", "/proc", "/dev", "/sys")
    )
    with tarfile.open(path, "w") as archive:
        entries = [
            _image(archive, PAUSE, {"/pause": pause.read_bytes()}, entrypoint=["/pause"]),
            _image(archive, HOST, host, entrypoint=["/bin/sh"]),
        ]
        _add(archive, "manifest.json", json.dumps(entries).encode())


def _image(
    archive: tarfile.TarFile, name: str, files: dict[str, bytes | None], *, entrypoint: list[str]
) -> dict[str, object]:
    """:param files: by path; None is a folder."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as inside:
        for file, content in sorted(files.items()):
            entry = tarfile.TarInfo(file.lstrip("/"))
            entry.mode = 0o755
            if content is None:
                entry.type = tarfile.DIRTYPE
                inside.addfile(entry)
            else:
                entry.size = len(content)
                inside.addfile(entry, io.BytesIO(content))
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    settings = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": entrypoint, "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    ).encode()
    named = f"{hashlib.sha256(settings).hexdigest()}.json"
    _add(archive, f"{digest}/layer.tar", layer.getvalue())
    _add(archive, named, settings)
    return {"Config": named, "RepoTags": [name], "Layers": [f"{digest}/layer.tar"]}


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))
