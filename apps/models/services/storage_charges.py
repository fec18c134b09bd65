"""The quota at work: nothing that a person adds may take a team beyond what it may store."""

from __future__ import annotations

from apps.accounts.models import Team
from apps.models.selectors.storage import storage_use
from controlplane.domain.storage.usage import StorageLevel, StorageQuotaExceeded
from controlplane.persistence.locks import AdvisoryLock, lock_in_transaction


def storage_check_room(*, team: Team | None, size: int) -> None:
    """Refuse early, before bytes are written; :func:`storage_charge` decides.

    :raises StorageQuotaExceeded: if so many bytes more do not fit.
    """
    if team is None:
        return
    use = storage_use(team)
    if not use.fits(size):
        raise StorageQuotaExceeded(team=team.name, use=use, requested=size)


def storage_charge(*, team: Team | None, size: int) -> None:
    """Make sure that so many bytes more fit. The caller adds their row in the same transaction.

    Others who charge the same team wait for its end, so that two uploads cannot both take the last bytes.

    :raises StorageQuotaExceeded: if they do not fit.
    """
    if team is None:
        return
    lock_in_transaction(AdvisoryLock.CHARGE_STORAGE, team.pk)
    storage_check_room(team=team, size=size)


def storage_check_open(*, team: Team) -> None:
    """For work that will store something of a size that nobody knows yet.

    What a job has made is always kept; a team that is beyond its quota because of that starts no more.

    :raises StorageQuotaExceeded: if the quota is used up.
    """
    use = storage_use(team)
    if use.level is StorageLevel.FULL:
        raise StorageQuotaExceeded(team=team.name, use=use, requested=None)
