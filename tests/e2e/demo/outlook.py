"""What the sample company may expect: forecasts for what waits, and a question that was answered."""

from __future__ import annotations

from apps.jobs.models import Job
from apps.quotas.models import Claim, Queue, WhatIf
from apps.quotas.reconcilers import forecasts_refresh, what_ifs_reconcile
from apps.quotas.services.forecasts import WhatIfRequest, what_if_create
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.domain.scheduling.what_if import AddNodes
from tests.e2e.demo.clock import NOW, before


def stored_forecast(waiting: Job) -> WhatIf:
    """Foretell all that waits, and answer what two more nodes would change for one of them."""
    Queue.objects.update(created_at=before(days=180))
    forecasts_refresh(policy=SchedulingPolicy(), at=NOW)
    claim = claim_of(waiting)
    running = Claim.objects.filter(chip__in=claim.chips).exclude(placement=[]).latest("id")
    node = running.placement[0]["node"]
    asked = what_if_create(
        question=WhatIfRequest(
            changes=[AddNodes(like=node, nodes=2)], queue=claim.queue, claim=claim
        ),
        actor=waiting.created_by,
    )
    what_ifs_reconcile(policy=SchedulingPolicy(), at=NOW)
    asked.refresh_from_db()
    return asked


def claim_of(job: Job) -> Claim:
    """The newest claim of the job."""
    return Claim.objects.filter(owner_uid=job.attempts.latest("number").uid).latest("id")
