from __future__ import annotations

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """Fields of faults, alerts and maintenance rollouts have the terms of the glossary."""

    dependencies: ClassVar = [("monitoring", "0008_isolation_on_nodes")]

    operations: ClassVar = [
        migrations.RenameField(model_name="fault", old_name="told_at", new_name="reported_at"),
        migrations.RenameField(model_name="alert", old_name="told_at", new_name="notified_at"),
        migrations.RenameField(model_name="alertgroup", old_name="told_at", new_name="notified_at"),
        migrations.RenameField(model_name="alertrule", old_name="trouble", new_name="error"),
        migrations.RenameField(
            model_name="alertsilence", old_name="made_by_name", new_name="created_by_name"
        ),
        migrations.RenameField(
            model_name="alertreceiver", old_name="made_by_name", new_name="created_by_name"
        ),
        migrations.RenameField(model_name="rollout", old_name="made_by", new_name="created_by"),
        migrations.RenameField(model_name="rollout", old_name="trouble", new_name="error"),
    ]
