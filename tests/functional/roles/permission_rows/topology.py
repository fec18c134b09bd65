"""Who sits where, and moves of running work."""

from __future__ import annotations

from tests.functional.roles.permission_rules import STAFF, action_row, page, rest

_GOAL = {"purpose": "fewer_fragments"}

REST = (
    rest("GET", "topology"),
    rest("GET", "topology?at=node:here/here-1"),
    rest("GET", "rearrangements"),
    rest("GET", "rearrangements/{rearrangement}"),
    rest("POST", "rearrangements", may=STAFF, body=_GOAL),
    rest("POST", "rearrangements/{rearrangement}/approve", may=STAFF),
    rest("POST", "rearrangements/{rearrangement}/dismiss", may=STAFF),
)

PAGES = (
    page("/topology"),
    page("/topology?at=node:here/here-1"),
    page("/topology/cards.json"),
    page("/rearrangements"),
    page("/rearrangements/new", may=STAFF),
    action_row("/rearrangements/new", may=STAFF, body=_GOAL),
    page("/rearrangements/{rearrangement}"),
    action_row("/rearrangements/{rearrangement}/approve", may=STAFF),
    action_row("/rearrangements/{rearrangement}/dismiss", may=STAFF),
)
