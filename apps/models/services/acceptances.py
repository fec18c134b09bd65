"""Whether a quantized version may be deployed, where a person decides otherwise than its figures did."""

from __future__ import annotations

from typing import Protocol

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.services import audit
from apps.models.models import ModelVersion
from controlplane.domain.models import Acceptance, ModelState


class AcceptanceRefused(Exception):
    """It cannot be decided so; the message says why."""


class Decision(Protocol):
    """``version_accept`` or ``version_reject``."""

    def __call__(self, *, version: ModelVersion, actor: User, reason: str) -> ModelVersion: ...


@transaction.atomic
def version_accept(*, version: ModelVersion, actor: User, reason: str) -> ModelVersion:
    """Let a version be deployed though it lost more than it may.

    :raises AcceptanceRefused: without a reason, or if the version is not a rejected one.
    """
    return _decide(
        version, actor=actor, reason=reason, from_=(Acceptance.REJECTED,), to=Acceptance.OVERRIDDEN
    )


@transaction.atomic
def version_reject(*, version: ModelVersion, actor: User, reason: str) -> ModelVersion:
    """Keep a version from being deployed from now on; what serves goes on.

    :raises AcceptanceRefused: without a reason, or if the version is not an accepted, quantized one.
    """
    return _decide(
        version,
        actor=actor,
        reason=reason,
        from_=(Acceptance.ACCEPTED, Acceptance.OVERRIDDEN),
        to=Acceptance.REJECTED,
    )


def _decide(
    version: ModelVersion,
    *,
    actor: User,
    reason: str,
    from_: tuple[Acceptance, ...],
    to: Acceptance,
) -> ModelVersion:
    why = " ".join(reason.split())
    if not why:
        raise AcceptanceRefused("say why, for those who will ask later")
    row = ModelVersion.objects.select_for_update(of=("self",), no_key=True).get(pk=version.pk)
    if not row.scheme and not row.format:
        raise AcceptanceRefused(f"{row} is not quantized; only quantized versions are judged")
    if row.state != ModelState.READY:
        raise AcceptanceRefused(f"{row} is {row.state}, not ready")
    if row.acceptance not in from_:
        raise AcceptanceRefused(f"{row} is {row.acceptance} already")
    before, row.acceptance = row.acceptance, to
    row.acceptance_reason = f"{actor.username}: {why}"
    row.save(update_fields=["acceptance", "acceptance_reason"])
    audit(
        actor=actor,
        action="model.accept" if to is Acceptance.OVERRIDDEN else "model.reject",
        team=row.line.team,
        uid=row.uid,
        name=str(row),
        reason=why,
        before=before,
    )
    return row
