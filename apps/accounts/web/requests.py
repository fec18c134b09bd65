"""A request of somebody who has logged in."""

from __future__ import annotations

from apps.accounts.models import User
from controlplane.web.pages import HtmxRequest


class SignedIn(HtmxRequest):
    """What a view behind ``login_required`` gets; for type checkers only."""

    user: User
