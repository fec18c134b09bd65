"""The runtime package where jobs can import it, without a view of the control plane's source.

``<home>/engines/runtime-<digest>/ninefold_runtime``: one copy for each content, never changed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import secrets
import shutil
from pathlib import Path

_PACKAGE = "ninefold_runtime"


def runtime_path(*, engines: Path) -> Path:
    """The folder to put on ``PYTHONPATH``; copied there first if need be.

    :raises OSError: if there is no room for the copy; nothing partial stays behind.
    """
    source = _source()
    files = sorted(
        path
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    )
    digest = hashlib.sha256()
    for path in files:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(source)}\0{content}\n".encode())
    copy = engines / f"runtime-{digest.hexdigest()[:16]}"
    if not copy.is_dir():
        _copy(files, source=source, destination=copy)
    return copy


def _source() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"the package {_PACKAGE} is not installed beside the control plane")
    return Path(spec.origin).parent


def _copy(files: list[Path], *, source: Path, destination: Path) -> None:
    staging = destination.with_name(f".{destination.name}.{secrets.token_hex(4)}")
    try:
        for path in files:
            target = staging / _PACKAGE / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            target.chmod(0o644)
        for folder in (staging, *staging.rglob("*/")):
            folder.chmod(0o755)
        staging.rename(destination)
    except OSError:
        # Another replica may have been first: its copy has the same content.
        shutil.rmtree(staging, ignore_errors=True)
        if not destination.is_dir():
            raise
