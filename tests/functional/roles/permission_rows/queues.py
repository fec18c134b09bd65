"""The queue tree, why claims wait, what would be different, and what a guarantee takes back."""

from __future__ import annotations

from tests.functional.roles.permission_rules import COMPANY, action_row, page, rest

REST = (
    rest("GET", "claims/{claim}/explanation"),
    rest("GET", "claims/{claim}/forecast"),
    rest("POST", "claims/{claim.waiting}/what-if", body={"priority": 3}),
    rest("GET", "queues/{queue}/reclaim-preview?chip=cpu&cards=1"),
    rest("GET", "what-ifs"),
    rest("GET", "what-ifs/{what_if}"),
)

PAGES = (
    page("/queues"),
    page("/queues/{queue}"),
    page("/queues/{queue}?tab=running"),
    page("/queues/{queue}?tab=usage"),
    page("/queues/{queue}?tab=changes"),
    page("/queues/{queue}/usage?chip=cpu&window=24h"),
    page("/queues/{queue}/reclaim?chip=cpu&cards=1&together=1"),
    page("/claims/{claim}"),
    page("/claims/{claim.waiting}"),
    page("/claims/{claim.waiting}/what-if"),
    action_row("/claims/{claim.waiting}/what-if", body={"cards": "1", "chip": "cpu"}),
    page("/what-ifs/{what_if}"),
    page("/forecast", may=COMPANY),
    action_row("/forecast", may=COMPANY, body={"cards": "1", "chip": "cpu"}),
)
