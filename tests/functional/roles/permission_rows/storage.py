"""What is kept, for how long, and how much of it."""

from __future__ import annotations

from tests.functional.roles.permission_rules import (
    COMPANY,
    ENGINEERS,
    TEAM_ADMINS,
    action_row,
    page,
    rest,
)

REST = (
    rest("GET", "storage"),
    rest("GET", "storage/plan"),
    rest("GET", "storage/rules"),
    rest("PUT", "storage/rules/{team}", may=TEAM_ADMINS, body={"rules": []}),
    rest("DELETE", "storage/rules/{team}", may=TEAM_ADMINS),
    rest("PUT", "storage/quotas/{team}", may=COMPANY, body={"bytes": 1 << 40}),
    rest("GET", "storage/runs"),
    rest("GET", "storage/artifacts"),
    rest("GET", "storage/artifacts/{artifact}"),
    rest("DELETE", "storage/artifacts/{artifact}", may=ENGINEERS),
    rest("POST", "storage/artifacts/{artifact}/pin", may=ENGINEERS),
    rest("POST", "storage/artifacts/{artifact}/unpin", may=ENGINEERS),
    rest("POST", "storage/artifacts/{artifact}/remove", may=ENGINEERS),
    rest("POST", "storage/artifacts/{artifact}/restore", may=ENGINEERS),
)

PAGES = (
    page("/storage"),
    page("/storage/quotas/{team}", may=COMPANY),
    action_row("/storage/quotas/{team}", may=COMPANY),
    page("/storage/rules/{team}", may=TEAM_ADMINS),
    action_row("/storage/rules/{team}", may=TEAM_ADMINS),
    action_row("/storage/rules/{team}/forget", may=TEAM_ADMINS),
    action_row("/storage/artifacts/{artifact}/pin", may=ENGINEERS),
    action_row("/storage/left/checkpoints/{attempt.failed}", may=ENGINEERS),
)
