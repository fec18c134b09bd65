"""Template variables of every page."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from apps.accounts.selectors import can_view_audit_log
from apps.console.web.system_status import lagging_controllers
from apps.fleet.selectors import is_fleet_operator

#: Parts of the fleet with an entry of their own in the sidebar.
FLEET_PARTS = frozenset(
    {"map", "faults", "alerts", "rollouts", "waste", "exposure", "sources", "clusters"}
)


def page_template_context(request: HttpRequest) -> dict[str, Any]:
    _, section, part, *_rest = [*request.path.split("/"), ""]
    return {
        "gateway_url": settings.NINEFOLD_GATEWAY_URL,
        "section": section,
        "part": part,
        "fleet_parts": FLEET_PARTS,
        # Functions: evaluated only by pages that show it.
        "lagging_controllers": lagging_controllers,
        "can_view_audit_log": lambda: can_view_audit_log(request.user),
        # Used in several places of a page, queried once.
        "operates": cache(lambda: is_fleet_operator(request.user)),
    }
