"""``manage.py bootstrap``: create the administrator, a team, a queue, the local cluster and sample models.

Idempotent: existing objects are not changed.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import Team, User
from apps.accounts.services import administrator_ensure, team_ensure
from apps.fleet import reconcilers as fleet_reconcilers
from apps.fleet import services as fleet
from apps.jobs.services import JobRequest, job_submit
from apps.models.models import ModelLine
from apps.models.selectors.catalog import published_catalog as catalog_published
from apps.models.services.catalog import catalog_load
from apps.quotas import services as quotas
from apps.quotas.models import Queue
from config.settings.environment import read_secret
from controlplane.domain.jobs.lifecycle import JobKind

ADMINISTRATOR = "admin"
SAMPLE_MODELS = ("ninefold-tiny-qwen2", "ninefold-tiny-llama")


class Command(BaseCommand):
    help = "Create what a first day needs; safe to repeat."

    def handle(self, *args: Any, **options: Any) -> None:
        admin = administrator_ensure(username=ADMINISTRATOR, password=read_secret("admin_password"))
        team = team_ensure(name="Default", slug="default", administrator=admin)
        queue = quotas.queue_ensure_default()
        if settings.NINEFOLD_LOCAL_CLUSTER:
            fleet.cluster_ensure(name="local", kind="local")
        fleet_reconcilers.inventories_sync(at=timezone.now())
        loaded = catalog_load(catalog=catalog_published(), at=timezone.now())
        self.stdout.write(f"the catalog of models: {loaded.lines()[-1]}")
        for name in SAMPLE_MODELS:
            self._ensure_sample_model(name, admin=admin, team=team, queue=queue)

    @transaction.atomic
    def _ensure_sample_model(self, name: str, *, admin: User, team: Team, queue: Queue) -> None:
        """The first time only: a job builds it, because that needs the engine's environment."""
        # Also one that was deleted is not created again.
        if ModelLine.objects.filter(team=None, name=name).exists():
            return
        ModelLine.objects.create(
            team=None,
            name=name,
            description="A real architecture with few layers and random weights.",
        )
        job_submit(
            actor=admin,
            team=team,
            request=JobRequest(
                kind=JobKind.SCRIPT,
                name=f"build {name}",
                spec={"argv": ["python", "-m", "ninefold_runtime", "tiny-model", name]},
                queue=queue,
                output_name=name,
                output_shared=True,
            ),
        )
        self.stdout.write(f"a job builds the sample model {name}")
