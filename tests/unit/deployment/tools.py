"""Programs that check files, where they are installed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def tool(name: str) -> str | None:
    """Its path, of this environment's own before any other; None if there is none."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name)
