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
    dependencies = [
        ("fleet", "0004_node_isolation"),
        ("monitoring", "0007_split_off_telemetry_and_notifications"),
    ]

    operations = [
        migrations.RunSQL(COPY, RESTORE),
        migrations.RemoveField(model_name="isolation", name="marked_node"),
    ]
