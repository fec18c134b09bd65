from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed
from django.db.models.signals import post_migrate


class QuotasConfig(AppConfig):
    name = "apps.quotas"
    label = "quotas"

    def ready(self) -> None:
        post_migrate.connect(create_default_priority_classes, sender=self)


def create_default_priority_classes(*, using: str, apps: Any = installed, **_: Any) -> None:
    """Create the default priority classes if the table is empty.

    :param apps: the migration state; not passed after a ``flush``.
    """
    if "priorityclass" not in apps.all_models["quotas"]:
        return  # migrated to a release without priority classes
    from apps.quotas.services.priority_classes import priority_classes_ensure  # noqa: PLC0415

    priority_classes_ensure(using=using)
