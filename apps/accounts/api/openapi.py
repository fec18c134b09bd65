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
from controlplane.web.problem_details import register_problem

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


register_problem(PermissionRefused, code="permission-refused", status=403)
register_problem(IdempotencyMismatch, code="idempotency-mismatch")
register_problem(
    IdempotentRequestInProgress, code="idempotency-busy", status=409, headers={"Retry-After": "2"}
)
register_problem(TokenRefused, TeamNameTaken, UserChangeRefused, code="refused")
register_problem(MembershipRefused, code="membership-refused", status=409)
