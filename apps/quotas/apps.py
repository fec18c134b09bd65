from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed
from django.db.models.signals import post_migrate


class QuotasConfig(AppConfig):
    name = "apps.quotas"
    label = "quotas"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        post_migrate.connect(name_priorities, sender=self)


def name_priorities(*, using: str, apps: Any = installed, **_: Any) -> None:
    """An empty table of priority classes gets the usual ones.

    :param apps: as the migrations have them; they do not say so where tables were only emptied.
    """
    if "priorityclass" not in apps.all_models["quotas"]:
        return  # migrated to a release before they came
    from apps.quotas.services.priorities import priority_classes_ensure  # noqa: PLC0415

    priority_classes_ensure(using=using)
