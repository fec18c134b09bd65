"""Controllers of scheduling."""

from __future__ import annotations

from apps.quotas.reconcilers.defragmentation import defragmentation_reconcile
from apps.quotas.reconcilers.forecasts import forecasts_refresh, what_ifs_reconcile
from apps.quotas.reconcilers.queue_sync import cluster_queues_sync
from apps.quotas.reconcilers.scheduling_cycles import cycle_run
