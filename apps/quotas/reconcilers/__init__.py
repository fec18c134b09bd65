"""The loops that bring claims to cards."""

from __future__ import annotations

from apps.quotas.reconcilers.copies import copies_keep
from apps.quotas.reconcilers.cycles import cycle_run
from apps.quotas.reconcilers.forecasts import forecasts_refresh
from apps.quotas.reconcilers.rearrangements import rearrangements_reconcile
from apps.quotas.reconcilers.what_ifs import what_ifs_answer

__all__ = [
    "copies_keep",
    "cycle_run",
    "forecasts_refresh",
    "rearrangements_reconcile",
    "what_ifs_answer",
]
