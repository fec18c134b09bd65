"""News that make a scheduling cycle worth while."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.quotas import reconcilers
from apps.quotas.selectors.policies import policy_now


@shared_task
def schedule(*, claim_uid: str) -> None:
    """A claim came or went, others perhaps with it: look again now rather than at the next beat."""
    del claim_uid  # the cycle is level-triggered: it looks at everything that waits
    reconcilers.cycle_run(policy=policy_now(), at=timezone.now())


@shared_task
def on_queues_changed(*, change_uid: str) -> None:
    """Who waits may be owed cards now, or may no longer have them."""
    del change_uid  # the cycle is level-triggered: it looks at everything that waits
    reconcilers.cycle_run(policy=policy_now(), at=timezone.now())


@shared_task
def on_queues_changed_keep_copies(*, change_uid: str) -> None:
    """Clusters that schedule by themselves have to hear of it; the cycle does not wait for them."""
    del change_uid  # what is told is the tree as it is now
    reconcilers.copies_keep()


@shared_task
def on_what_if_asked(*, what_if_uid: str) -> None:
    """Somebody looks at the page and waits for the answer."""
    del what_if_uid  # whoever asked before is answered first
    reconcilers.what_ifs_answer(policy=policy_now(), at=timezone.now())
