"""How refusals of accounts look to a client."""

from __future__ import annotations

from apps.accounts.selectors import PermissionRefused
from apps.accounts.services import (
    IdempotencyBusy,
    IdempotencyMismatch,
    MembershipRefused,
    NameTaken,
    PersonRefused,
    TokenRefused,
)
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


@translates(TokenRefused)
@translates(NameTaken)
@translates(PersonRefused)
def _field_refused(error: TokenRefused | NameTaken | PersonRefused) -> Problem:
    errors = [{"field": error.field, "message": str(error)}] if error.field else []
    return Problem(status=422, code="refused", detail=str(error), errors=errors)


@translates(MembershipRefused)
def _membership(error: MembershipRefused) -> Problem:
    return Problem(status=409, code="membership-refused", detail=str(error))
