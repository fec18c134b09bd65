"""A request of somebody who has logged in."""

from __future__ import annotations

from django.http import HttpRequest

from apps.accounts.models import User


class SignedIn(HttpRequest):
    """What a view behind ``login_required`` gets; for type checkers only."""

    user: User
