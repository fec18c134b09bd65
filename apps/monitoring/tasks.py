"""Turns of the loops of monitoring."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.monitoring.reconcilers import mails, webhooks
from apps.monitoring.services.notifications import news_prune


@shared_task
def send_mails() -> int:
    return mails.mails_send(at=timezone.now())


@shared_task
def call_webhooks() -> int:
    return webhooks.webhooks_call(at=timezone.now())


@shared_task
def prune_news() -> int:
    return news_prune(at=timezone.now())
