"""Servers that several contract suites share."""

from __future__ import annotations

from tests.s3_servers import s3_url

__all__ = ["s3_url"]
