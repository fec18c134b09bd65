"""Turns of the loops of scheduling, of the ledger and of clusters' copies of the queues."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.quotas import reconcilers
from apps.quotas.reconcilers import usage
from apps.quotas.selectors.policies import policy_now


@shared_task
def run_cycle() -> int:
    return reconcilers.cycle_run(policy=policy_now(), at=timezone.now())


@shared_task
def refresh_forecasts() -> int:
    return reconcilers.forecasts_refresh(policy=policy_now(), at=timezone.now())


@shared_task
def answer_what_ifs() -> int:
    return reconcilers.what_ifs_answer(policy=policy_now(), at=timezone.now())


@shared_task
def record_midnights() -> int:
    return usage.usage_cut(at=timezone.now())


@shared_task
def roll_usage() -> int:
    return usage.usage_roll()


@shared_task
def compare_ledger() -> None:
    usage.usage_compare(at=timezone.now())


@shared_task
def carry_out_rearrangements() -> int:
    return reconcilers.rearrangements_reconcile(at=timezone.now())


@shared_task
def keep_copies() -> int:
    return reconcilers.copies_keep()
