"""Who sits where, and moves of running work."""

from __future__ import annotations

from tests.functional.roles.permission_rules import STAFF, action_row, page, rest

_GOAL = {"purpose": "fewer_fragments"}

REST = (
    rest("GET", "topology"),
    rest("GET", "topology?at=node:here/here-1"),
    rest("GET", "defragmentation-plans"),
    rest("GET", "defragmentation-plans/{defragmentation_plan}"),
    rest("POST", "defragmentation-plans", may=STAFF, body=_GOAL),
    rest("POST", "defragmentation-plans/{defragmentation_plan}/approve", may=STAFF),
    rest("POST", "defragmentation-plans/{defragmentation_plan}/dismiss", may=STAFF),
)

PAGES = (
    page("/topology"),
    page("/topology?at=node:here/here-1"),
    page("/topology/cards.json"),
    page("/defragmentation-plans"),
    page("/defragmentation-plans/new", may=STAFF),
    action_row("/defragmentation-plans/new", may=STAFF, body=_GOAL),
    page("/defragmentation-plans/{defragmentation_plan}"),
    action_row("/defragmentation-plans/{defragmentation_plan}/approve", may=STAFF),
    action_row("/defragmentation-plans/{defragmentation_plan}/dismiss", may=STAFF),
)
