"""Objects of a cluster's API as YAML, compared with the files below ``tests/golden``.

``NINEFOLD_UPDATE_GOLDEN=1`` writes the files instead; look at the difference before committing it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent


def compare(manifests: Sequence[Mapping[str, Any]], *, case: str) -> None:
    """Fail unless the objects are what ``<case>.yaml`` says."""
    text = yaml.safe_dump_all(manifests, sort_keys=False, allow_unicode=True, width=100)
    compare_text(text, case=case)


def compare_text(text: str, *, case: str) -> None:
    path = FOLDER / f"{case}.yaml"
    if os.environ.get("NINEFOLD_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"{path} is missing; NINEFOLD_UPDATE_GOLDEN=1 writes it"
    assert text == path.read_text(encoding="utf-8"), (
        f"{case} is rendered in another way; NINEFOLD_UPDATE_GOLDEN=1 writes it anew"
    )
