"""What every page knows."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from apps.accounts.selectors import sees_audit
from apps.fleet.selectors import operates
from apps.monitoring.web.status import late_loops

#: Parts of the fleet that have a place of their own in the rail.
FLEET_PARTS = frozenset(
    {"map", "faults", "alerts", "waves", "waste", "exposure", "sources", "clusters"}
)


def product(request: HttpRequest) -> dict[str, Any]:
    _, section, part, *_rest = [*request.path.split("/"), ""]
    return {
        "gateway_url": settings.NINEFOLD_GATEWAY_URL,
        "section": section,
        "part": part,
        "fleet_parts": FLEET_PARTS,
        # Functions: only the pages of those who are shown it ask.
        "late_loops": late_loops,
        "sees_audit": lambda: sees_audit(request.user),
        # Asked for in several places of a page, and looked up once.
        "operates": cache(lambda: operates(request.user)),
    }
