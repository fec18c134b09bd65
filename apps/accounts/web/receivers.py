"""What Django's own log-in tells us, for the audit trail. Connected when the app is ready."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from apps.accounts import services
from apps.accounts.models import User
from controlplane.persistence.origins import origin
from controlplane.web.rates import count_within, counted_address

#: Failed log-ins from one address that are recorded within the window: a flood must not fill the table.
_RECORDED = 10
_WINDOW_SECONDS = 600


@receiver(user_logged_in)
def record_log_in(sender: Any, request: HttpRequest, user: User, **more: Any) -> None:
    services.audit(
        actor=user,
        action="session.begin",
        uid=user.uid,
        name=user.username,
        # Set by the view that the provider leads back to.
        by=getattr(request, "signed_on_by", "password"),
    )


@receiver(user_logged_out)
def record_log_out(sender: Any, request: HttpRequest, user: User | None, **more: Any) -> None:
    if isinstance(user, User):
        services.audit(actor=user, action="session.end", uid=user.uid, name=user.username)


@receiver(user_login_failed)
def record_failure(
    sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **more: Any
) -> None:
    if request is None or getattr(request, "axes_locked_out", False):
        return
    address = counted_address(origin().address)
    if count_within(f"failed-log-ins:{address}", seconds=_WINDOW_SECONDS) > _RECORDED:
        return
    # People type passwords into the wrong field: a name that is nobody's is not kept.
    user = User.objects.filter(username=str(credentials.get("username", ""))).first()
    services.audit(
        actor=None,
        action="session.refuse",
        uid=user.uid if user else "",
        name=user.username if user else "",
    )
