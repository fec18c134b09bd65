"""Storage of the sample company: a team that is nearly full, rules, something deleted, past rounds."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from apps.jobs.models import Attempt
from apps.models.models import StorageMeasure
from apps.models.selectors.storage import storage_usage_of_team
from apps.models.services import artifact_storage
from apps.models.services.storage_cleanup import (
    garbage_collect,
    measure_artifact_storage,
    run_retention,
)
from controlplane.domain.jobs.lifecycle import ENDED_ATTEMPT_STATES
from controlplane.domain.storage.team_storage import RetentionRules, StorageKind
from tests import factories
from tests.e2e.demo.users import Users

MIB = 1 << 20


def stored(who: Users) -> None:
    """Sizes of working folders are made up: nothing ran."""
    at = timezone.now()
    with transaction.atomic():
        spare = factories.model_version(actor=who.ada, team=who.maps, name="first-try")
        for _ in range(2):
            factories.model_version(actor=who.ada, team=who.maps, name="street-names")
    measure_artifact_storage(at=at)
    ended = Attempt.objects.filter(job__team=who.maps, state__in=ENDED_ATTEMPT_STATES)
    for number, attempt in enumerate(ended.order_by("pk")[:6]):
        StorageMeasure.objects.update_or_create(
            kind=StorageKind.CHECKPOINTS,
            owner_uid=attempt.uid,
            defaults={"team": who.maps, "size": (number + 1) * 37 * MIB, "measured_at": at},
        )
    artifact_storage.storage_quota_set(
        team=who.maps, limit=int(storage_usage_of_team(who.maps).used * 1.15), actor=who.admin
    )
    artifact_storage.retention_rules_set(
        team=None,
        rules=RetentionRules(enabled=True, keep_versions=10, checkpoint_days=14, log_days=90),
        actor=who.admin,
    )
    if spare.artifact is not None:
        artifact_storage.artifact_delete(
            artifact=spare.artifact, actor=who.ada, at=at - timedelta(days=2)
        )
    garbage_collect(at=at)
    run_retention(at=at)
    artifact_storage.retention_rules_set(
        team=who.maps,
        rules=RetentionRules(enabled=True, keep_versions=1, checkpoint_days=0, failed_days=7),
        actor=who.admin,
    )
