"""Servers that several contract suites share."""

from __future__ import annotations

from tests.s3_servers import https_bucket, s3_url

__all__ = ["https_bucket", "s3_url"]
