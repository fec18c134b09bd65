"""Tasks of the controllers of monitoring."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.monitoring.reconcilers import (
    alerts,
    health,
    isolations,
    maintenance_rollouts,
    metric_sources,
)
from apps.monitoring.services.alert_evaluation import alerts_prune
from apps.monitoring.services.faults import faults_prune
from apps.notifications.services.notifications import events_prune
from apps.telemetry.services.metric_storage import history_cleanup


@shared_task
def read_sources() -> int:
    return metric_sources.sources_read(at=timezone.now())


@shared_task
def detect_stale_cards() -> int:
    return metric_sources.stale_cards_reconcile(at=timezone.now())


@shared_task
def tidy_history() -> int:
    at = timezone.now()
    summed = history_cleanup(at=at)
    faults_prune(at=at)
    return summed


@shared_task
def diagnose_clusters() -> int:
    return health.cluster_signals_sync(at=timezone.now())


@shared_task
def decide_health() -> int:
    return health.health_reconcile(at=timezone.now())


@shared_task
def advance_isolations() -> int:
    return isolations.isolations_reconcile(at=timezone.now())


@shared_task
def evaluate_health_rules() -> int:
    return health.health_rules_reconcile(at=timezone.now())


@shared_task
def advance_rollouts() -> int:
    return maintenance_rollouts.maintenance_rollouts_reconcile(at=timezone.now())


@shared_task
def evaluate_alert_rules() -> int:
    return alerts.alerts_reconcile(at=timezone.now())


@shared_task
def send_alerts() -> int:
    return alerts.alerts_send(at=timezone.now())


@shared_task
def prune_events() -> int:
    at = timezone.now()
    return events_prune(at=at) + alerts_prune(at=at)
