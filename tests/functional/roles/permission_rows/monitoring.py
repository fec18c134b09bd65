"""What is told, to whom and where to."""

from __future__ import annotations

from tests.functional.roles.permission_rules import (
    EVERYBODY,
    OWNER,
    TEAM_ADMINS,
    action_row,
    page,
    rest,
)

_HOOK = {
    "team": "{team}",
    "name": "fresh",
    "url": "https://hooks.example.com/",
    "kinds": ["job.failed"],
}

REST = (
    rest("GET", "notifications"),
    rest("POST", "notifications/read-all"),
    rest("GET", "notifications/{notification}", may=OWNER, hidden=True),
    rest("POST", "notifications/{notification}/read", may=OWNER, hidden=True),
    rest("GET", "webhooks"),
    rest("POST", "webhooks", may=TEAM_ADMINS, body=_HOOK),
    rest("GET", "webhooks/{webhook}", may=TEAM_ADMINS, hidden=True),
    rest("PATCH", "webhooks/{webhook}", may=TEAM_ADMINS, hidden=True, body={"active": False}),
    rest("DELETE", "webhooks/{webhook}", may=TEAM_ADMINS, hidden=True),
    rest("POST", "webhooks/{webhook}/rotate", may=TEAM_ADMINS, hidden=True),
    rest("POST", "webhooks/{webhook}/test", may=TEAM_ADMINS, hidden=True),
    rest("GET", "deliveries"),
    rest("GET", "deliveries/{delivery}", may=TEAM_ADMINS, hidden=True),
    rest("POST", "deliveries/{delivery}/again", may=TEAM_ADMINS, hidden=True),
)

PAGES = (
    page("/notifications"),
    action_row("/notifications/read", body={"all": "1"}),
    action_row("/notifications/undo"),
    page("/notifications/bell", may=EVERYBODY),
    page("/notifications/settings"),
    action_row("/notifications/settings"),
    action_row("/notifications/test"),
    page("/notifications/{notification}", may=OWNER, hidden=True),
    page("/teams/{team.slug}/webhooks", may=TEAM_ADMINS),
    page("/teams/{team.slug}/webhooks/new", may=TEAM_ADMINS),
    page("/webhooks/{webhook}", may=TEAM_ADMINS, hidden=True),
    page("/webhooks/{webhook}/change", may=TEAM_ADMINS, hidden=True),
    action_row("/webhooks/{webhook}/test", may=TEAM_ADMINS, hidden=True),
    action_row("/webhooks/{webhook}/pause", may=TEAM_ADMINS, hidden=True),
    action_row("/webhooks/{webhook}/resume", may=TEAM_ADMINS, hidden=True),
    action_row("/webhooks/{webhook}/secret", may=TEAM_ADMINS, hidden=True),
    action_row("/webhooks/{webhook}/delete", may=TEAM_ADMINS, hidden=True),
    action_row("/webhooks/{webhook}/deliveries/{delivery}/again", may=TEAM_ADMINS, hidden=True),
)
