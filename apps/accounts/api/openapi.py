"""OpenAPI description of authentication, and the problem details of accounts errors."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from apps.accounts.selectors import PermissionRefused
from apps.accounts.services import (
    IdempotencyMismatch,
    IdempotentRequestInProgress,
    MembershipRefused,
    TeamNameTaken,
    TokenRefused,
    UserChangeRefused,
)
from controlplane.domain.common.permissions import Scope
from controlplane.web.problem_details import ProblemDetails, problem_translator

_SAFE = ("GET", "HEAD", "OPTIONS")


class TokenScheme(OpenApiAuthenticationExtension):
    target_class = "apps.accounts.api.authentication.PersonalTokenAuthentication"
    name = "personalToken"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": (
                "A personal token, nfp-…, from your profile page or POST /api/v1/tokens. It may be used "
                f"for its scopes ({', '.join(Scope)}) only; each of them lets it read, and each operation "
                "that changes something says in `x-token-scope` which one it needs."
            ),
        }


def add_token_scopes_to_openapi(
    result: dict[str, Any], generator: Any, **_more: Any
) -> dict[str, Any]:
    """Add the required token scope to each operation; a postprocessing hook of drf-spectacular."""
    for path, _regex, method, answer in generator.endpoints:
        operation = result["paths"].get(path, {}).get(method.lower())
        scope = getattr(answer.cls, "token_scope", None)
        if operation is not None and scope is not None:
            operation["x-token-scope"] = (Scope.READ if method in _SAFE else scope).value
    return result


@problem_translator(PermissionRefused)
def _permission_problem(error: PermissionRefused) -> ProblemDetails:
    return ProblemDetails(status=403, code="permission-refused", detail=str(error))


@problem_translator(IdempotencyMismatch)
def _idempotency_mismatch_problem(error: IdempotencyMismatch) -> ProblemDetails:
    return ProblemDetails(status=422, code="idempotency-mismatch", detail=str(error))


@problem_translator(IdempotentRequestInProgress)
def _idempotency_busy_problem(error: IdempotentRequestInProgress) -> ProblemDetails:
    headers = {"Retry-After": "2"}
    return ProblemDetails(status=409, code="idempotency-busy", detail=str(error), headers=headers)


@problem_translator(TokenRefused)
@problem_translator(TeamNameTaken)
@problem_translator(UserChangeRefused)
def _invalid_field_problem(
    error: TokenRefused | TeamNameTaken | UserChangeRefused,
) -> ProblemDetails:
    errors = [{"field": error.field, "message": str(error)}] if error.field else []
    return ProblemDetails(status=422, code="refused", detail=str(error), errors=errors)


@problem_translator(MembershipRefused)
def _membership_problem(error: MembershipRefused) -> ProblemDetails:
    return ProblemDetails(status=409, code="membership-refused", detail=str(error))
