"""Token authentication and token scopes of the REST API; browsers use the session."""

from __future__ import annotations

from django.conf import settings
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, Throttled
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from apps.accounts import services
from apps.accounts.models import PersonalToken, User
from apps.accounts.selectors import PermissionRefused
from controlplane.domain.common.permissions import Scope, scopes_allow
from controlplane.persistence.audit_context import current_audit_context
from controlplane.web.rate_limits import count_events_in_window, rate_limit_address

_WINDOW_SECONDS = 60
_SAFE = ("GET", "HEAD", "OPTIONS")


class PersonalTokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer nfp-…`` with a personal token, which becomes ``request.auth``."""

    def authenticate(self, request: Request) -> tuple[User, PersonalToken] | None:
        """:raises AuthenticationFailed: if there is a bearer token and it is not valid.
        :raises Throttled: if the address has sent too many invalid tokens.
        """
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = services.authenticate_personal_token(text.strip(), at=timezone.now())
        if token is None:
            _count_token_failure()
            raise AuthenticationFailed(
                "this token is unknown, revoked or expired; make a new one on your profile page"
            )
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def _count_token_failure() -> None:
    """Count a failed token per client address and process. Valid tokens are never throttled: one
    misconfigured script behind a shared address must not block the others.

    :raises Throttled: once an address has sent more wrong tokens within a minute than it may.
    """
    address = rate_limit_address(current_audit_context().address)
    failures = count_events_in_window(f"failed-tokens:{address}", seconds=_WINDOW_SECONDS)
    if failures > settings.NINEFOLD_TOKEN_FAILURES:
        raise Throttled(wait=_WINDOW_SECONDS)


class TokenScopePermission(BasePermission):
    """Allow a token what its scopes allow.

    Each view names the scope of its writes in ``token_scope``; reading needs only :attr:`Scope.READ`. A view
    without ``token_scope`` accepts no tokens, so that every new view has to decide.
    """

    def has_permission(self, request: Request, view: object) -> bool:
        """:raises PermissionRefused: naming the scope that is missing."""
        needed: Scope | None = getattr(view, "token_scope", None)
        if needed is None and isinstance(request.auth, PersonalToken):
            raise PermissionRefused("this endpoint does not accept tokens; sign in with a browser")
        require_token_scope(
            request, needed if request.method not in _SAFE and needed else Scope.READ
        )
        return True


def require_token_scope(request: Request, needed: Scope) -> None:
    """Require a further scope of the token, if the request has one.

    :raises PermissionRefused: naming the scope that the token lacks.
    """
    token = request.auth
    if not isinstance(token, PersonalToken) or scopes_allow(token.scope_set, needed):
        return
    current = ", ".join(sorted(token.scope_set)) or "none"
    raise PermissionRefused(
        f"this needs a token with the scope {needed.value}; {token.name} has {current}. "
        "Create another token on your profile page."
    )


def acting_user(request: Request) -> User:
    """Return the authenticated user of the request.

    :raises NotAuthenticated: if there is none.
    """
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user
