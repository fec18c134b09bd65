"""Bearer tokens for programs; people's browsers use the session."""

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
from controlplane.domain.permissions import Scope, within
from controlplane.persistence.origins import origin
from controlplane.web.rates import count_within, counted_address

_WINDOW_SECONDS = 60
_SAFE = ("GET", "HEAD", "OPTIONS")


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer nfp-…`` with a personal token, which becomes ``request.auth``."""

    def authenticate(self, request: Request) -> tuple[User, PersonalToken] | None:
        """:raises AuthenticationFailed: if there is a bearer token and it is not valid.
        :raises Throttled: if there were too many of them from that address.
        """
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = services.token_use(text.strip(), at=timezone.now())
        if token is None:
            _count_failure()
            raise AuthenticationFailed(
                "this token is unknown, revoked or expired; make a new one on your profile page"
            )
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def _count_failure() -> None:
    """Counted by each process for itself. A valid token is never held up: one forgotten script behind a
    shared address must not stop the others.

    :raises Throttled: once an address has sent more wrong tokens within a minute than it may.
    """
    address = counted_address(origin().address)
    failures = count_within(f"failed-tokens:{address}", seconds=_WINDOW_SECONDS)
    if failures > settings.NINEFOLD_TOKEN_FAILURES:
        raise Throttled(wait=_WINDOW_SECONDS)


class WithinScope(BasePermission):
    """A token may do what its scopes allow, at addresses that say which scope they belong to.

    Each view names in ``token_scope`` what changing something there needs; looking needs only
    :attr:`Scope.READ`. A view that names none takes no tokens: whoever adds one has to decide.
    """

    def has_permission(self, request: Request, view: object) -> bool:
        """:raises PermissionRefused: naming the scope that is missing."""
        needed: Scope | None = getattr(view, "token_scope", None)
        if needed is None and isinstance(request.auth, PersonalToken):
            raise PermissionRefused("tokens are not taken at this address; log in by browser")
        scope_require(request, needed if request.method not in _SAFE and needed else Scope.READ)
        return True


def scope_require(request: Request, needed: Scope) -> None:
    """For what a view does beyond its own scope; whoever comes without a token may do all that they may.

    :raises PermissionRefused: naming the scope that the token lacks.
    """
    token = request.auth
    if not isinstance(token, PersonalToken) or within(token.scope_set, needed):
        return
    held = ", ".join(sorted(token.scope_set)) or "none"
    raise PermissionRefused(
        f"this needs a token with the scope {needed.value}; {token.name} has {held}. "
        "Make another on your profile page."
    )


def acting_user(request: Request) -> User:
    """Who acts, at an address that is for people who are logged in only.

    :raises NotAuthenticated: if nobody is.
    """
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user
