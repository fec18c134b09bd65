"""Launches as text, compared with the files below ``tests/golden/engines``.

``NINEFOLD_UPDATE_GOLDEN=1`` writes the files instead; look at the difference before committing it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from controlplane.ports.launches import Launch

FOLDER = Path(__file__).parent / "engines"


def compare(launch: Launch, *, engine: str, case: str) -> None:
    """Fail unless the Launch is what ``engines/<engine>/<case>.json`` says."""
    path = FOLDER / engine / f"{case}.json"
    text = json.dumps(described(launch), ensure_ascii=False, indent=1) + "\n"
    if os.environ.get("NINEFOLD_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"{path} is missing; NINEFOLD_UPDATE_GOLDEN=1 writes it"
    assert text == path.read_text(encoding="utf-8"), (
        f"{engine} renders {case} in another way; NINEFOLD_UPDATE_GOLDEN=1 writes it anew"
    )


def described(launch: Launch) -> dict[str, Any]:
    """What a person would compare: programs that come along are named only, tests of their own read them."""
    return {
        "image": launch.image,
        # Without the digest of its lock, which each upgrade of a library changes.
        "engine": launch.engine.name.partition("-")[0] if launch.engine else "",
        "continues": launch.continues or "",
        "secrets": sorted(launch.secrets),
        "roles": [
            {
                "name": role.name,
                "argv": list(role.argv),
                "environment": dict(sorted(role.environment.items())),
                "ports": list(role.ports),
                "probe": role.probe.path if role.probe else "",
                "placements": [list(placement.cards) for placement in role.placements],
            }
            for role in launch.roles
        ],
        "files": {
            path: "(a program)" if path.endswith(".py") else text.splitlines()
            for path, text in sorted(launch.files.items())
        },
    }
