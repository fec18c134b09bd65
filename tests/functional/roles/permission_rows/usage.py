"""Who used what, and what it costs."""

from __future__ import annotations

from tests.functional.roles.permission_rules import COMPANY, page, rest

REST = (
    rest("GET", "usage/records"),
    rest("GET", "usage/days"),
    rest("GET", "usage/months"),
    rest("GET", "usage/rates"),
    rest("PUT", "usage/rates/nvidia-h800", may=COMPANY, body={"per_hour": "26.5"}),
    rest("DELETE", "usage/rates/nvidia-h800", may=COMPANY),
)

PAGES = (
    page("/reports/usage"),
    page("/reports/usage/chart"),
)
