"""Turns of the loops of monitoring."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.monitoring.reconcilers import (
    alerts,
    cluster_signals,
    health,
    health_rules,
    isolations,
    mails,
    telemetry,
    waves,
    webhooks,
)
from apps.monitoring.services.alerts_turns import alerts_prune
from apps.monitoring.services.history import history_tidy
from apps.monitoring.services.notifications import news_prune


@shared_task
def send_mails() -> int:
    return mails.mails_send(at=timezone.now())


@shared_task
def call_webhooks() -> int:
    return webhooks.webhooks_call(at=timezone.now())


@shared_task
def read_sources() -> int:
    return telemetry.sources_read(at=timezone.now())


@shared_task
def notice_silence() -> int:
    return telemetry.silence_notice(at=timezone.now())


@shared_task
def tidy_history() -> int:
    return history_tidy(at=timezone.now())


@shared_task
def read_signs() -> int:
    return cluster_signals.cluster_signals_sync(at=timezone.now())


@shared_task
def decide_health() -> int:
    return health.health_turn(at=timezone.now())


@shared_task
def advance_isolations() -> int:
    return isolations.isolations_turn(at=timezone.now())


@shared_task
def judge_figures() -> int:
    return health_rules.rules_turn(at=timezone.now())


@shared_task
def advance_rollouts() -> int:
    return waves.waves_turn(at=timezone.now())


@shared_task
def judge_alerts() -> int:
    return alerts.alerts_turn(at=timezone.now())


@shared_task
def send_alerts() -> int:
    return alerts.alerts_send(at=timezone.now())


@shared_task
def prune_news() -> int:
    at = timezone.now()
    return news_prune(at=at) + alerts_prune(at=at)
