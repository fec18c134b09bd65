"""What every test may rely on."""

from __future__ import annotations
