"""Write on the nodes of ``fleet`` which are isolated and tainted, and drop the column that said the latter."""

from django.db import migrations

#: Nodes that are isolated as a whole, and those whose cluster has our taint on them.
COPY = """
UPDATE fleet_node AS node
   SET isolated_since = whole.isolated_since, tainted = whole.tainted
  FROM (
    SELECT node_id,
           min(began_at) FILTER (WHERE ended_at IS NULL) AS isolated_since,
           bool_or(marked_node) AS tainted
      FROM monitoring_isolation
     WHERE card_id IS NULL
     GROUP BY node_id
    HAVING bool_or(ended_at IS NULL OR marked_node)
  ) AS whole
 WHERE node.id = whole.node_id
"""
#: Every isolation of a tainted node counts as having put the taint there: it is removed once.
RESTORE = """
UPDATE monitoring_isolation AS isolation
   SET marked_node = TRUE
  FROM fleet_node AS node
 WHERE node.id = isolation.node_id AND isolation.card_id IS NULL AND node.tainted
"""


class Migration(migrations.Migration):
    """Isolations write on the nodes; faults, alerts and rollouts have the terms of the glossary."""

    dependencies = [
        ("fleet", "0004_isolation_and_errors"),
        ("monitoring", "0007_split_off_telemetry_and_notifications"),
    ]

    operations = [
        migrations.RunSQL(COPY, RESTORE),
        migrations.RemoveField(model_name="isolation", name="marked_node"),
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
