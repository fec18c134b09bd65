"""What surrounds all other pages, and what describes REST."""

from __future__ import annotations

from tests.functional.roles.permission_rules import EVERYBODY, STAFF, action_row, page, rest

REST = (rest("GET", ""), rest("GET", "schema"), rest("GET", "docs"))

PAGES = (
    page("/"),
    action_row("/i18n/setlang/", may=EVERYBODY, body={"language": "en", "next": "/"}),
    page("/search?q=a"),
    page("/docs/problems"),
    page("/design", may=STAFF, hidden=True),
    page("/design/chart/marks", may=STAFF, hidden=True),
)
