"""What every page knows."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from apps.accounts.selectors import sees_audit
from apps.monitoring.web.status import late_loops


def product(request: HttpRequest) -> dict[str, Any]:
    return {
        "gateway_url": settings.NINEFOLD_GATEWAY_URL,
        "section": request.path.split("/")[1],
        # Functions: only the pages of those who are shown it ask.
        "late_loops": late_loops,
        "sees_audit": lambda: sees_audit(request.user),
    }
