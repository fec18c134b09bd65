"""How refusals of accounts look to a client."""

from __future__ import annotations

from apps.accounts.selectors import PermissionRefused
from apps.accounts.services import IdempotencyBusy, IdempotencyMismatch
from controlplane.web.problems import Problem, translates


@translates(PermissionRefused)
def _refused(error: PermissionRefused) -> Problem:
    return Problem(status=403, code="permission-refused", detail=str(error))


@translates(IdempotencyMismatch)
def _mismatch(error: IdempotencyMismatch) -> Problem:
    return Problem(status=422, code="idempotency-mismatch", detail=str(error))


@translates(IdempotencyBusy)
def _busy(error: IdempotencyBusy) -> Problem:
    headers = {"Retry-After": "2"}
    return Problem(status=409, code="idempotency-busy", detail=str(error), headers=headers)
