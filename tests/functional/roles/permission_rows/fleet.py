"""Chips, clusters, queues, and how the product itself does."""

from __future__ import annotations

from tests.functional.roles.permission_rules import OPERATORS, STAFF, action_row, page, rest

_CLUSTER = {"name": "fresh", "kind": "kubernetes", "kubeconfig": "none"}
_NODE = "/fleet/clusters/{cluster}/nodes/{node.name}"

REST = (
    rest("GET", "status", may=STAFF),
    rest("GET", "chips"),
    rest("GET", "chips/nvidia-h800"),
    rest("GET", "clusters"),
    rest("GET", "clusters/{cluster}", company_wide=True),
    rest("POST", "clusters", may=OPERATORS, body=_CLUSTER),
    rest("PATCH", "clusters/{cluster}", may=OPERATORS, company_wide=True, body={"binding": "node"}),
    rest("DELETE", "clusters/{cluster}", may=OPERATORS, company_wide=True),
    rest("POST", "clusters/{cluster}/check", may=OPERATORS, company_wide=True),
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
    page("/fleet/map"),
    page("/fleet/map/cards.json"),
    page("/fleet/map/card?cluster={cluster.name}&node={node.name}&index=0", company_wide=True),
    page("/fleet/faults"),
    action_row("/fleet/faults/acknowledge", may=OPERATORS),
    action_row("/fleet/faults/isolate", may=OPERATORS),
    action_row("/fleet/faults/release", may=OPERATORS),
    page("/fleet/held-back"),
    action_row("/fleet/held-back/isolate", may=OPERATORS),
    action_row("/fleet/held-back/leave", may=OPERATORS),
    page("/fleet/cards/{card}", company_wide=True),
    page("/fleet/cards/{card}/load.json", company_wide=True),
    action_row("/fleet/cards/{card}/isolate", may=OPERATORS, company_wide=True),
    action_row("/fleet/cards/{card}/release", may=OPERATORS, company_wide=True),
    action_row("/fleet/cards/{card}/test", may=OPERATORS, company_wide=True),
    page("/fleet/waste"),
    page("/fleet/exposure"),
    page("/fleet/chips"),
    page("/fleet/chips/nvidia-h800"),
    page("/fleet/clusters"),
    page("/fleet/clusters/new", may=OPERATORS),
    page("/fleet/clusters/{cluster}", company_wide=True),
    page("/fleet/clusters/{cluster}/change", may=OPERATORS, company_wide=True),
    action_row("/fleet/clusters/{cluster}/check", may=OPERATORS, company_wide=True),
    action_row("/fleet/clusters/{cluster}/remove", may=OPERATORS, company_wide=True),
    page(_NODE, company_wide=True),
    action_row(f"{_NODE}/isolate", may=OPERATORS, company_wide=True),
    action_row(f"{_NODE}/release", may=OPERATORS, company_wide=True),
    action_row(f"{_NODE}/cordon", may=OPERATORS, company_wide=True),
    action_row(f"{_NODE}/uncordon", may=OPERATORS, company_wide=True),
    page("/status", may=STAFF),
)
