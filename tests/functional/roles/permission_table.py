"""Who may do what: one row for each address and method, whoever's thing it is about.

A path names the things that it is about, ``/jobs/{job}``; the same row is tried with the own team's things and
with another's. What follows from that is not said again in each row (``rules.expected``):

- a stranger, and somebody who was deactivated, are asked to log in;
- another team's thing is not there, for everybody but the administrators of the company;
- an own thing may be seen by every member, and what is more needs one of the roles in ``may``.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.functional.roles.permission_rows import (
    accounts,
    alerts,
    fleet,
    health,
    jobs,
    monitoring,
    queues,
    registry,
    serving,
    shell,
    storage,
    telemetry,
    topology,
    trees,
    usage,
)

REST = (
    *accounts.REST,
    *queues.REST,
    *trees.REST,
    *fleet.REST,
    *health.REST,
    *registry.REST,
    *jobs.REST,
    *serving.REST,
    *storage.REST,
    *telemetry.REST,
    *topology.REST,
    *usage.REST,
    *monitoring.REST,
    *alerts.REST,
    *shell.REST,
)
PAGES = (
    *accounts.PAGES,
    *queues.PAGES,
    *fleet.PAGES,
    *registry.PAGES,
    *jobs.PAGES,
    *serving.PAGES,
    *storage.PAGES,
    *telemetry.PAGES,
    *topology.PAGES,
    *usage.PAGES,
    *monitoring.PAGES,
    *alerts.PAGES,
    *shell.PAGES,
)

#: Addresses of which no row speaks, and who looks after them.
ELSEWHERE: Mapping[str, str] = {
    "/healthz": "for machines; says nothing of anybody",
    "/readyz": "for machines; tests/functional/operations",
    "/metrics": "for machines; tests/functional/operations",
    "/api/v1/storage/runs/{}": "no run has been; apps/models/selectors decides as for the list",
    "/internal/gateway/snapshot": "between our own processes; tests/functional/api/test_gateways.py",
    "/internal/gateway/usage": "between our own processes; tests/functional/api/test_gateways.py",
    "/api/v1/": "answers 404 to all; tests/functional/api/test_problems.py",
    "/api/v1/attempts/{}/progress": "the attempt's own token; tests/functional/api/test_attempts.py",
    "/api/v1/attempts/{}/files/{}": "the attempt's own token; tests/functional/api/test_attempts.py",
    "/api/v1/attempts/{}/manifest": "the attempt's own token; tests/functional/api/test_attempts.py",
    "/api/v1/attempts/{}/checkpoint": "the attempt's own token; tests/functional/api/test_checkpoints.py",
    "/api/v1/attempts/{}/uploads": "the attempt's own token; tests/functional/api/test_direct_uploads.py",
    "/api/v1/attempts/{}/uploads/complete": "the attempt's own token; tests/functional/api/test_direct_uploads.py",
    "/api/v1/telemetry/push": "a node's own token; tests/functional/api/telemetry/test_push.py",
    "/oauth/device_authorization": "for programs; tests/functional/security/test_device_authorization.py",
    "/oauth/token": "for programs; tests/functional/security/test_device_authorization.py",
    "/password/reset": "not there without a mail server; tests/functional/accounts",
    "/profile/email/confirm/{}": "by a signed link; tests/functional/security/test_email_change.py",
    "/sign-on": "the provider's own tests",
    "/sign-on/callback": "the provider's own tests",
    "/sign-on/link/{}": "the provider's own tests",
    "/profile/sign-on/1/unlink": "the provider's own tests",
}
