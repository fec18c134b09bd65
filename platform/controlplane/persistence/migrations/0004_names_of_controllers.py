from __future__ import annotations

from typing import ClassVar

from django.db import migrations

#: Names of tasks.
_CONTROLLERS = (
    ("apps.monitoring.tasks.judge_alerts", "apps.monitoring.tasks.evaluate_alert_rules"),
    ("apps.monitoring.tasks.notice_silence", "apps.monitoring.tasks.detect_stale_cards"),
    ("apps.monitoring.tasks.read_signs", "apps.monitoring.tasks.diagnose_clusters"),
)
_LEASES = (
    ("monitoring.waves", "monitoring.rollouts"),
    ("quotas.rearrangements", "quotas.defragmentation"),
)
_RENAME_CONTROLLER = "UPDATE persistence_loop_state SET name = %s WHERE name = %s"
#: Keeps the fencing token, which must only grow.
_RENAME_LEASE = "UPDATE persistence_lease SET name = %s WHERE name = %s"


class Migration(migrations.Migration):
    """Three controllers and two leases have the terms of the glossary."""

    dependencies: ClassVar = [("persistence", "0003_controller_state")]

    operations: ClassVar = [
        migrations.RunSQL([(statement, [new, old])], [(statement, [old, new])])
        for statement, names in ((_RENAME_CONTROLLER, _CONTROLLERS), (_RENAME_LEASE, _LEASES))
        for old, new in names
    ]
