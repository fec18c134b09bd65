"""Alerts and rollouts belong to nobody: they are for whoever operates the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tests.functional.roles.permission_rules import OPERATORS, action_row, page, rest

_RULE: Mapping[str, Any] = {
    "name": "fresh",
    "title": "Too hot",
    "measure": "cards.temperature",
    "op": ">",
    "threshold": 90,
    "severity": "warning",
}
_SILENCE = {"name": "fresh", "matchers": ["rule=fresh"], "ends_at": "{soon}", "reason": "move"}
_RECEIVER = {"name": "fresh", "kind": "slack", "url": "https://hooks.example.com/2"}
_ROUTE = {"name": "fresh", "severity": "info", "receivers": []}

_ROLLOUT = {"name": "fresh", "cluster": "0" * 32}

_rest = partial(rest, may=OPERATORS, company_wide=True)
_page = partial(page, may=OPERATORS, company_wide=True)
_action_row = partial(action_row, may=OPERATORS, company_wide=True)

REST = (
    _rest("GET", "alerts"),
    _rest("GET", "alerts/{alert}"),
    _rest("GET", "alert-rules"),
    _rest("POST", "alert-rules", body=_RULE),
    _rest("POST", "alert-rules/trial", body=_RULE),
    _rest("GET", "alert-rules/{alert.rule}"),
    _rest("PATCH", "alert-rules/{alert.rule}", body={"enabled": False}),
    _rest("DELETE", "alert-rules/{alert.rule}"),
    _rest("GET", "alert-silences"),
    _rest("POST", "alert-silences", body=_SILENCE),
    _rest("GET", "alert-silences/{alert.silence}"),
    _rest("PATCH", "alert-silences/{alert.silence}", body={"reason": "moved"}),
    _rest("DELETE", "alert-silences/{alert.silence}"),
    _rest("GET", "alert-receivers"),
    _rest("POST", "alert-receivers", body=_RECEIVER),
    _rest("GET", "alert-receivers/{alert.receiver}"),
    _rest("PATCH", "alert-receivers/{alert.receiver}", body={"active": False}),
    _rest("DELETE", "alert-receivers/{alert.receiver}"),
    _rest("POST", "alert-receivers/{alert.receiver}/test"),
    _rest("GET", "alert-routes"),
    _rest("POST", "alert-routes", body=_ROUTE),
    _rest("GET", "alert-routes/{alert.route}"),
    _rest("PUT", "alert-routes/{alert.route}", body=_ROUTE),
    _rest("DELETE", "alert-routes/{alert.route}"),
    _rest("GET", "rollouts"),
    _rest("POST", "rollouts", body=_ROLLOUT),
    _rest("GET", "rollouts/{rollout}"),
    _rest("POST", "rollouts/{rollout}/pause"),
    _rest("POST", "rollouts/{rollout}/resume"),
    _rest("POST", "rollouts/{rollout}/cancel"),
)

_AT = "/fleet/alerts"
PAGES = (
    _page(_AT),
    _page(f"{_AT}/past"),
    _page(f"{_AT}/{{alert}}"),
    _page(f"{_AT}/silences"),
    _page(f"{_AT}/silences/new"),
    _action_row(f"{_AT}/silences/{{alert.silence}}/end"),
    _page(f"{_AT}/rules"),
    _page(f"{_AT}/rules/new"),
    _page(f"{_AT}/rules/{{alert.rule}}"),
    _action_row(f"{_AT}/rules/{{alert.rule}}/delete"),
    _page(f"{_AT}/routes"),
    _page(f"{_AT}/routes/new"),
    _page(f"{_AT}/routes/{{alert.route}}"),
    _action_row(f"{_AT}/routes/{{alert.route}}/delete"),
    _page(f"{_AT}/receivers/new"),
    _action_row(f"{_AT}/receivers/{{alert.receiver}}/test"),
    _action_row(f"{_AT}/receivers/{{alert.receiver}}/pause"),
    _action_row(f"{_AT}/receivers/{{alert.receiver}}/resume"),
    _action_row(f"{_AT}/receivers/{{alert.receiver}}/delete"),
    _page("/fleet/rollouts"),
    _page("/fleet/rollouts/new"),
    _page("/fleet/rollouts/{rollout}"),
    _action_row("/fleet/rollouts/{rollout}/pause"),
    _action_row("/fleet/rollouts/{rollout}/resume"),
    _action_row("/fleet/rollouts/{rollout}/cancel"),
)
