"""The runtime package as one archive that Python imports from: pods get the version that renders their spec.

It travels in a ConfigMap of each namespace, named by its content, so that no image has to be built anew and no two
versions ever meet in one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PACKAGE = "ninefold_runtime"
#: Archives of one content are equal to the byte.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeArchive:
    content: bytes
    #: ``ninefold-runtime-<digest>``.
    name: str


@cache
def runtime_archive() -> RuntimeArchive:
    """:raises FileNotFoundError: if the package is not installed beside the control plane."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"the package {_PACKAGE} is not installed beside the control plane")
    source = Path(spec.origin).parent
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(source.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                entry = zipfile.ZipInfo(f"{_PACKAGE}/{path.relative_to(source)}", _EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
    content = buffer.getvalue()
    digest = hashlib.sha256(content).hexdigest()[:16]
    return RuntimeArchive(content=content, name=f"ninefold-runtime-{digest}")
