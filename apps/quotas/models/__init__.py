"""Models of queues, claims, scheduling, defragmentation and the usage ledger."""

from __future__ import annotations

from apps.quotas.models.claims import (
    Allocation,
    Claim,
    ClaimForecast,
    ClaimTransition,
    Nomination,
)
from apps.quotas.models.defragmentation import (
    Defragmentation,
    DefragmentationMove,
    DefragmentationTransition,
    MoveTransition,
)
from apps.quotas.models.queues import Entitlement, PriorityClass, Queue, QueueChange
from apps.quotas.models.scheduling import CyclePhase, ForecastRun, WhatIf
from apps.quotas.models.usage import CardRate, UsageDay, UsageRecord

__all__ = (
    "Allocation",
    "CardRate",
    "Claim",
    "ClaimForecast",
    "ClaimTransition",
    "CyclePhase",
    "Defragmentation",
    "DefragmentationMove",
    "DefragmentationTransition",
    "Entitlement",
    "ForecastRun",
    "MoveTransition",
    "Nomination",
    "PriorityClass",
    "Queue",
    "QueueChange",
    "UsageDay",
    "UsageRecord",
    "WhatIf",
)
