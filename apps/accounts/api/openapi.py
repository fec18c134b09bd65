"""How authentication is described to readers of the schema."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from controlplane.domain.permissions import Scope

_SAFE = ("GET", "HEAD", "OPTIONS")


class TokenScheme(OpenApiAuthenticationExtension):
    target_class = "apps.accounts.api.authentication.TokenAuthentication"
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


def describe_scopes(result: dict[str, Any], generator: Any, **_more: Any) -> dict[str, Any]:
    """Say for each operation which scope a token needs there, for drf-spectacular's postprocessing."""
    for path, _regex, method, answer in generator.endpoints:
        operation = result["paths"].get(path, {}).get(method.lower())
        scope = getattr(answer.cls, "token_scope", None)
        if operation is not None and scope is not None:
            operation["x-token-scope"] = (Scope.READ if method in _SAFE else scope).value
    return result
