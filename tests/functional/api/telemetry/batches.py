"""Batches as an agent sends them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.test import Client

PUSH = "/api/v1/telemetry/push"


def text(*, node: str = "n0", utilization: float = 93, fault: int = 0) -> str:
    """What an exporter prints of the second card of a node."""
    labels = f'gpu="1",UUID="GPU-1b",Hostname="{node}"'
    return (
        f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {utilization}\n"
        f"DCGM_FI_DEV_XID_ERRORS{{{labels}}} {fault}\n"
    )


def send(
    token: str,
    body: str | bytes,
    *,
    sequence: object = 1,
    at: object = None,
    vendor: str = "nvidia",
    content_type: str = "text/plain; version=0.0.4",
    **headers: str,
) -> Any:
    """The answer to one batch."""
    sent = {
        "Authorization": f"Bearer {token}",
        "X-Ninefold-Sequence": str(sequence),
        "X-Ninefold-At": str(at or datetime.now(UTC).isoformat()),
        "X-Ninefold-Vendor": vendor,
        "X-Ninefold-Agent": "ninefold-agent/1.0",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return Client().post(PUSH, body, content_type=content_type, headers=sent)
