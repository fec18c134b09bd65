"""Models of queues, claims, scheduling, defragmentation and the usage ledger."""

from __future__ import annotations

from apps.quotas.models.claims import (
    Allocation,
    CardRate,
    Claim,
    ClaimForecast,
    ClaimTransition,
    Nomination,
    UsageDay,
    UsageRecord,
)
from apps.quotas.models.queues import Entitlement, PriorityClass, Queue, QueueChange
from apps.quotas.models.scheduling import (
    CyclePhase,
    Defragmentation,
    DefragmentationMove,
    DefragmentationTransition,
    ForecastRun,
    MoveTransition,
    WhatIf,
)
