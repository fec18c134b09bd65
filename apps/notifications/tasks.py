"""Tasks that run the controllers of e-mail and webhook delivery.

Their Celery names stay those of ``apps.monitoring``: queued messages and records of reconcile runs have them.
"""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.notifications import reconcilers


@shared_task(name="apps.monitoring.tasks.send_mails")
def send_mails() -> int:
    return reconcilers.emails_send(at=timezone.now())


@shared_task(name="apps.monitoring.tasks.call_webhooks")
def call_webhooks() -> int:
    return reconcilers.webhooks_call(at=timezone.now())
