"""What a crashed job left behind is noted at the cards that it held."""

from __future__ import annotations

from datetime import datetime

from django.db.models.functions import Coalesce

from apps.jobs.models import Attempt
from apps.monitoring.services.faults import signals_record
from apps.quotas.models import Allocation
from controlplane.domain.faults import FaultLevel
from controlplane.domain.health.crashes import Crash, signature
from controlplane.domain.health.signals import Origin, Signal
from controlplane.domain.health.situations import Blame
from controlplane.domain.jobs.lifecycle import AttemptState


def crash_record(*, job_uid: str, at: datetime) -> int:
    """Note the crash of the job's last attempt at each card that it held; at how many.

    None if its log tells nothing that is known, or its own program is to blame. It is a note whatever the log
    says, because that is its owner's word: what many logs say together is weighed where decisions are made.
    """
    attempt = (
        Attempt.objects.select_related("job")
        .filter(job__uid=job_uid, state=AttemptState.FAILED)
        .order_by("-number")
        .first()
    )
    crash = signature(attempt.log_tail) if attempt is not None else None
    if attempt is None or crash is None or crash.blame is Blame.PROGRAM:
        return 0
    whole = Coalesce("card__parent__index", "card__index")
    held = Allocation.objects.filter(claim__uid=attempt.claim_uid)
    places = held.values_list("node__cluster__uid", "node__name", whole)
    signals = [
        _signal(crash, cluster=cluster, node=node, index=index, at=at)
        for cluster, node, index in places.distinct()
    ]
    return signals_record(signals=signals, at=at) if signals else 0


def _signal(crash: Crash, *, cluster: str, node: str, index: int, at: datetime) -> Signal:
    """Everybody reads it, so it holds nothing of the job's own words: not its name, no line of its log."""
    return Signal(
        origin=Origin.JOB,
        cluster=cluster,
        node=node,
        index=index,
        code=crash.fault or crash.code,
        level=FaultLevel.NOTE,
        at=at,
        message=f"the log of a job that crashed here says so ({crash.code})",
        vendor=crash.vendor,
    )
