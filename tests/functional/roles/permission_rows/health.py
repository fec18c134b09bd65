"""What is wrong with the fleet, and what is out of use."""

from __future__ import annotations

from tests.functional.roles.permission_rules import OPERATORS, rest

_CONDITION = {"metric": "temperature", "op": ">", "value": 90}
_RULE = {"name": "fresh", "condition": _CONDITION, "level": 1}
_UNKNOWN = ["0" * 32]
_HELD = {"cluster": "0" * 32, "chip": "cpu", "reason": "why"}

REST = (
    rest("GET", "faults"),
    rest("GET", "faults/{fault}", company_wide=True),
    rest("POST", "faults/acknowledge", may=OPERATORS, body={"uids": _UNKNOWN}),
    rest("GET", "isolations"),
    rest("GET", "isolations/{isolation}", company_wide=True),
    rest("POST", "isolations", may=OPERATORS, body={"cards": _UNKNOWN, "reason": "why"}),
    rest("POST", "isolations/release", may=OPERATORS, body={"uids": _UNKNOWN, "reason": "why"}),
    rest("POST", "isolations/test", may=OPERATORS, body={"uids": _UNKNOWN}),
    rest("GET", "held-back"),
    rest("POST", "held-back/isolate", may=OPERATORS, body=_HELD),
    rest("POST", "held-back/leave", may=OPERATORS, body=_HELD),
    rest("GET", "health-rules"),
    rest("GET", "health-rules/{health_rule}", company_wide=True),
    rest("POST", "health-rules", may=OPERATORS, body=_RULE),
    rest("PATCH", "health-rules/{health_rule}", may=OPERATORS, company_wide=True, body={}),
    rest("DELETE", "health-rules/{health_rule}", may=OPERATORS, company_wide=True),
    rest("POST", "health-rules/dry-run", may=OPERATORS, body={"condition": _CONDITION, "hours": 1}),
    rest("GET", "health-policy"),
    rest("PATCH", "health-policy", may=OPERATORS, body={"settings": {"settle": 300}}),
)
