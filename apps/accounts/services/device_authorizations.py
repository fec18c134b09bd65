"""Sign-in of programs without a browser: the device authorization grant of RFC 8628.

The program gets a device code, which it keeps, and a user code, which it shows. A signed-in user enters the user
code and approves or denies it; then the program exchanges its device code for a personal token, once.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.conf import settings
from django.db import IntegrityError, transaction

from apps.accounts.models import DeviceAuthorization, PersonalToken, User
from apps.accounts.selectors import valid_personal_tokens
from apps.accounts.services.audit_log import record_audit_entry
from apps.accounts.services.personal_tokens import token_create, token_digest
from controlplane.domain.common.permissions import Scope
from controlplane.persistence.audit_context import current_audit_context

#: How long a code is valid.
CODE_LIFETIME = timedelta(minutes=10)
#: Seconds between two requests of a program, and by how much ``slow_down`` raises them.
POLL_INTERVAL = 5
#: Days until the token expires, if ``NINEFOLD_TOKEN_MAX_DAYS`` does not say less.
TOKEN_DAYS = 90
#: Consonants only, so that no words arise, and no letter looks like a digit (RFC 8628, section 6.1).
USER_CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
USER_CODE_LENGTH = 8
_LONGEST_TOKEN_NAME = 80


class DevicePollError(StrEnum):
    """Why there is no token, as the RFC names it."""

    AUTHORIZATION_PENDING = "authorization_pending"
    SLOW_DOWN = "slow_down"
    ACCESS_DENIED = "access_denied"
    EXPIRED_TOKEN = "expired_token"  # noqa: S105 - a code of the RFC
    INVALID_GRANT = "invalid_grant"


class DevicePollRefused(Exception):
    """There is no token for this request."""

    def __init__(self, error: DevicePollError, *, interval: int = POLL_INTERVAL) -> None:
        super().__init__(error.value)
        self.error = error
        #: Seconds until the next request.
        self.interval = interval


class DeviceCodeUnavailable(Exception):
    """The user code is unknown, expired, or was decided before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDeviceCode:
    """What the program gets; ``device_code`` is shown only now."""

    device_code: str
    row: DeviceAuthorization


def device_authorization_create(
    *, scopes: frozenset[Scope], host: str, at: datetime
) -> NewDeviceCode:
    """Return a new pair of codes, and delete expired ones."""
    DeviceAuthorization.objects.filter(expires_at__lt=at - timedelta(days=1)).delete()
    device_code = secrets.token_urlsafe(32)
    while True:
        code = "".join(secrets.choice(USER_CODE_LETTERS) for _ in range(USER_CODE_LENGTH))
        try:
            with transaction.atomic():
                row = DeviceAuthorization.objects.create(
                    digest=token_digest(device_code),
                    user_code=code,
                    scopes=sorted(scopes),
                    host=host,
                    remote_address=current_audit_context().address,
                    expires_at=at + CODE_LIFETIME,
                    interval=POLL_INTERVAL,
                )
        except IntegrityError:
            continue
        return NewDeviceCode(device_code=device_code, row=row)


def normalize_user_code(text: str) -> str:
    """Return a user code as it is stored: letters only, upper case."""
    return "".join(letter for letter in text.upper() if letter.isalnum())


def format_user_code(code: str) -> str:
    """Return a user code as people read it: ``BCDF-GHJK``."""
    half = len(code) // 2
    return f"{code[:half]}-{code[half:]}"


def pending_device_authorization(*, user_code: str, at: datetime) -> DeviceAuthorization:
    """Return what waits for a decision under that code.

    :raises DeviceCodeUnavailable: if nothing does.
    """
    row = DeviceAuthorization.objects.filter(
        user_code=normalize_user_code(user_code)[:USER_CODE_LENGTH],
        decision=DeviceAuthorization.DeviceDecision.PENDING,
        expires_at__gt=at,
    ).first()
    if row is None:
        raise DeviceCodeUnavailable
    return row


@transaction.atomic
def device_authorization_decide(
    *, user_code: str, approved: bool, user: User, at: datetime
) -> DeviceAuthorization:
    """Approve or deny a sign-in. The token will be one of ``user``.

    :raises DeviceCodeUnavailable: if the code is unknown, expired, or was decided before.
    """
    found = pending_device_authorization(user_code=user_code, at=at)
    row = DeviceAuthorization.objects.select_for_update().get(pk=found.pk)
    if row.decision != DeviceAuthorization.DeviceDecision.PENDING:
        raise DeviceCodeUnavailable
    decisions = DeviceAuthorization.DeviceDecision
    row.decision = decisions.APPROVED if approved else decisions.DENIED
    row.user = user
    row.save(update_fields=["decision", "user"])
    record_audit_entry(
        row,
        actor=user,
        action="device_authorization.approve" if approved else "device_authorization.deny",
        name=format_user_code(row.user_code),
        host=row.host,
        address=row.remote_address,
        scopes=row.scopes,
    )
    return row


def device_token_issue(*, device_code: str, at: datetime) -> tuple[PersonalToken, str]:
    """Return the token of an approved sign-in and its text; it is issued once.

    :raises DevicePollRefused: if there is none, or none yet.
    """
    with transaction.atomic():
        row = (
            DeviceAuthorization.objects.select_for_update(of=("self",))
            .select_related("user")
            .filter(digest=token_digest(device_code))
            .first()
        )
        error = _poll_error(row, at=at)
        if row is not None and error is None and row.user is not None:
            row.decision = DeviceAuthorization.DeviceDecision.REDEEMED
            row.save(update_fields=["decision"])
            return _create_token(row, user=row.user, at=at)
    # The new interval of a program that is too fast is stored although it is refused.
    raise DevicePollRefused(
        error or DevicePollError.INVALID_GRANT, interval=row.interval if row else POLL_INTERVAL
    )


def _poll_error(row: DeviceAuthorization | None, *, at: datetime) -> DevicePollError | None:
    decisions = DeviceAuthorization.DeviceDecision
    if row is None or row.decision == decisions.REDEEMED:
        return DevicePollError.INVALID_GRANT
    if row.expires_at <= at:
        return DevicePollError.EXPIRED_TOKEN
    if row.decision == decisions.DENIED:
        return DevicePollError.ACCESS_DENIED
    if row.decision == decisions.APPROVED:
        is_active = row.user is not None and row.user.is_active
        return None if is_active else DevicePollError.ACCESS_DENIED
    # A second of tolerance: the interval is measured between two answers there and two requests here.
    is_early = row.polled_at is not None and at - row.polled_at < timedelta(
        seconds=row.interval - 1
    )
    row.polled_at = at
    if is_early:
        row.interval = min(row.interval + POLL_INTERVAL, 60)
    row.save(update_fields=["polled_at", "interval"])
    return DevicePollError.SLOW_DOWN if is_early else DevicePollError.AUTHORIZATION_PENDING


def _create_token(
    row: DeviceAuthorization, *, user: User, at: datetime
) -> tuple[PersonalToken, str]:
    longest: int = settings.NINEFOLD_TOKEN_MAX_DAYS
    days = min(TOKEN_DAYS, longest) if longest else TOKEN_DAYS
    return token_create(
        user=user,
        name=_free_token_name(row, user=user, at=at),
        scopes=frozenset(Scope(code) for code in row.scopes),
        expires_at=at + timedelta(days=days),
    )


def _free_token_name(row: DeviceAuthorization, *, user: User, at: datetime) -> str:
    base = f"ninefold on {row.host or row.remote_address or 'a computer'}"[
        : _LONGEST_TOKEN_NAME - 12
    ]
    taken = set(valid_personal_tokens(user=user, at=at).values_list("name", flat=True))
    if base not in taken:
        return base
    return next(name for n in range(2, len(taken) + 3) if (name := f"{base} ({n})") not in taken)
