"""Bearer tokens for programs; people's browsers use the session."""

from __future__ import annotations

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated
from rest_framework.request import Request

from apps.accounts import services
from apps.accounts.models import User


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer nfp-…`` with a personal token."""

    def authenticate(self, request: Request) -> tuple[User, str] | None:
        """:raises AuthenticationFailed: if there is a bearer token and it is not valid."""
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        user = services.token_user(text.strip(), at=timezone.now())
        if user is None:
            raise AuthenticationFailed(
                "this token is unknown, revoked or expired; make a new one on your profile page"
            )
        return user, text

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def acting_user(request: Request) -> User:
    """Who acts, at an address that is for people who are logged in only.

    :raises NotAuthenticated: if nobody is.
    """
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user
