"""The queue tree is changed: queues, files, history, and names for priorities."""

from __future__ import annotations

from tests.functional.roles.permission_rules import COMPANY, QUEUE_ADMINS, rest

REST = (
    rest("POST", "queues", may=COMPANY, body={"name": "fresh"}),
    rest("PATCH", "queues/{queue}", may=QUEUE_ADMINS, body={"description": "anew"}),
    rest("DELETE", "queues/{queue}", may=COMPANY),
    rest("GET", "queue-tree"),
    rest("PUT", "queue-tree", may=COMPANY, body={"queues": {"fresh": {}}}),
    rest("GET", "queue-changes"),
    rest("GET", "queue-changes/{change}", may=QUEUE_ADMINS, hidden=True),
    rest("POST", "queue-changes/{change}/revert", may=QUEUE_ADMINS, hidden=True),
    rest("GET", "priority-classes"),
    rest("GET", "priority-classes/{priority_class}", company_wide=True),
    rest("POST", "priority-classes", may=COMPANY, body={"name": "night", "value": -20}),
    rest(
        "PATCH",
        "priority-classes/{priority_class}",
        may=COMPANY,
        company_wide=True,
        body={"description": "anew"},
    ),
    rest("DELETE", "priority-classes/{priority_class}", may=COMPANY, company_wide=True),
    rest("POST", "claims/dry-run", body={"queue": "{queue.name}", "chips": ["cpu"]}),
)
