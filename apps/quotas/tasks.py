"""Celery tasks of quotas: scheduling cycles, the ledger, queue sync, and subscribers of outbox messages."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.quotas import reconcilers
from apps.quotas.selectors.scheduling_cycles import current_scheduling_policy
from apps.quotas.services import usage_ledger


@shared_task
def run_cycle() -> int:
    return reconcilers.cycle_run(policy=current_scheduling_policy(), at=timezone.now())


@shared_task
def refresh_forecasts() -> int:
    return reconcilers.forecasts_refresh(policy=current_scheduling_policy(), at=timezone.now())


@shared_task
def answer_what_ifs() -> int:
    return reconcilers.what_ifs_reconcile(policy=current_scheduling_policy(), at=timezone.now())


@shared_task
def record_midnights() -> int:
    return usage_ledger.usage_record_midnights(at=timezone.now())


@shared_task
def roll_usage() -> int:
    return usage_ledger.usage_roll_up()


@shared_task
def compare_ledger() -> None:
    usage_ledger.usage_ledger_check(at=timezone.now())


@shared_task
def reconcile_defragmentations() -> int:
    return reconcilers.defragmentation_reconcile(at=timezone.now())


@shared_task
def keep_copies() -> int:
    return reconcilers.cluster_queues_sync()


@shared_task
def schedule(*, claim_uid: str) -> None:
    """Claims were requested or released: run a scheduling cycle now."""
    del claim_uid  # the cycle is level-triggered: it considers all pending claims
    reconcilers.cycle_run(policy=current_scheduling_policy(), at=timezone.now())


@shared_task
def on_queues_changed(*, change_uid: str) -> None:
    """Quotas changed: run a scheduling cycle now."""
    del change_uid  # the cycle is level-triggered: it considers all pending claims
    reconcilers.cycle_run(policy=current_scheduling_policy(), at=timezone.now())


@shared_task
def on_queues_changed_keep_copies(*, change_uid: str) -> None:
    """Quotas changed: sync queues to clusters with their own scheduler, separately from the cycle."""
    del change_uid  # the current tree is synced
    reconcilers.cluster_queues_sync()


@shared_task
def on_what_if_asked(*, what_if_uid: str) -> None:
    """A what-if was requested: compute pending results."""
    del what_if_uid  # requests are processed in order
    reconcilers.what_ifs_reconcile(policy=current_scheduling_policy(), at=timezone.now())
