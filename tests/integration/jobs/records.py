"""What is left of a job or an attempt in the database."""

from __future__ import annotations

from apps.jobs.models import Attempt, Job
from apps.quotas.models import Claim


def transition_events(entity: Job | Attempt) -> list[str]:
    return list(entity.transitions.values_list("event", flat=True))


def claim_of(attempt: Attempt) -> Claim:
    return Claim.objects.get(uid=attempt.claim_uid)
