"""Chips, clusters, queues, and how the product itself does."""

from __future__ import annotations

from tests.functional.roles.rules import STAFF, page, rest

REST = (
    rest("GET", "status", may=STAFF),
    rest("GET", "chips"),
    rest("GET", "chips/nvidia-h800"),
    rest("GET", "clusters"),
    rest("GET", "clusters/{cluster}", company_wide=True),
    rest("GET", "nodes"),
    rest("GET", "nodes/{node}", company_wide=True),
    rest("GET", "cards"),
    rest("GET", "cards/{card}", company_wide=True),
    rest("GET", "queues"),
    rest("GET", "queues/{queue}"),
    rest("GET", "claims"),
    rest("GET", "claims/{claim}"),
)

PAGES = (
    page("/fleet"),
    page("/fleet/chips"),
    page("/fleet/chips/nvidia-h800"),
    page("/status", may=STAFF),
)
