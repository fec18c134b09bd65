"""Where figures of cards come from, and the tokens of nodes."""

from __future__ import annotations

from functools import partial

from tests.functional.roles.permission_rules import OPERATORS, action_row, page, rest

_NOWHERE = "0" * 32
_SOURCE = {"name": "fresh", "cluster": _NOWHERE, "kind": "exporter", "options": {}}
#: Addresses tell of the company's network.
_ONE = {"may": OPERATORS, "company_wide": True}

REST = (
    rest("GET", "telemetry-sources"),
    rest("POST", "telemetry-sources", may=OPERATORS, body=_SOURCE),
    rest("GET", "telemetry-sources/{source}", **_ONE),
    rest("PATCH", "telemetry-sources/{source}", **_ONE, body={"enabled": True}),
    rest("DELETE", "telemetry-sources/{source}", **_ONE),
    rest("POST", "telemetry-sources/{source}/try", **_ONE),
    rest("GET", "node-tokens"),
    rest("POST", "node-tokens", may=OPERATORS, body={"node": _NOWHERE}),
    rest("GET", "node-tokens/{node_token}", **_ONE),
    rest("DELETE", "node-tokens/{node_token}", **_ONE),
)

_page = partial(page, may=OPERATORS, company_wide=True)
_action_row = partial(action_row, may=OPERATORS, company_wide=True)

_AT = "/fleet/sources"
PAGES = (
    _page(_AT),
    _page(f"{_AT}/new"),
    _page(f"{_AT}/agents"),
    _page(f"{_AT}/tokens/new"),
    _action_row(f"{_AT}/tokens/{{node_token}}/revoke"),
    _page(f"{_AT}/{{source}}"),
    _page(f"{_AT}/{{source}}/change"),
    _action_row(f"{_AT}/{{source}}/try"),
    _action_row(f"{_AT}/{{source}}/pause"),
    _action_row(f"{_AT}/{{source}}/resume"),
    _action_row(f"{_AT}/{{source}}/delete"),
)
