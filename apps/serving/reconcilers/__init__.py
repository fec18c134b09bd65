"""Controllers of serving."""

from __future__ import annotations

from apps.serving.reconcilers.deployments import (
    LAUNCH_PREFIX,
    deployments_reconcile,
    replica_launches_cleanup,
    replicas_reconcile,
)
from apps.serving.reconcilers.weight_downloads import WEIGHTS_PREFIX, weight_downloads_reconcile
