"""The history of figures, a partition for each day; and room on the pages of the newest figures."""

from __future__ import annotations

from django.db import migrations

# Rows come in the order of their times, so an index of ranges of blocks is all that reading by time needs.
# Gauges in single precision: 24 bits are finer than any sensor. Bytes and counters need more.
_PARENT = """
CREATE TABLE monitoring_history (
    card_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    memory_used double precision,
    memory_total double precision,
    ecc_corrected double precision,
    ecc_uncorrected double precision,
    link_errors double precision,
    network_errors double precision,
    utilization real,
    temperature real,
    memory_temperature real,
    power real,
    clock real,
    health real,
    PRIMARY KEY (card_id, at)
) PARTITION BY RANGE (at);
CREATE INDEX monitoring_history_by_time ON monitoring_history USING brin (at);
"""
# From yesterday to the day after tomorrow; a loop goes on from there.
_PARTITIONS = """
DO $$
DECLARE
    day date;
BEGIN
    FOR offset_days IN -1..2 LOOP
        day := (now() AT TIME ZONE 'UTC')::date + offset_days;
        EXECUTE format(
            'CREATE TABLE %I PARTITION OF monitoring_history FOR VALUES FROM (%L) TO (%L)',
            'monitoring_history_' || to_char(day, 'YYYYMMDD'),
            day || ' 00:00:00+00',
            (day + 1) || ' 00:00:00+00'
        );
    END LOOP;
END $$;
"""
# Each row is written anew every few seconds and no indexed column changes: with room on its page the new version
# stays there (HOT), and dead versions are cleaned up in passing.
_ROOM = """
ALTER TABLE monitoring_cardfigures SET (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.5, autovacuum_vacuum_cost_delay = 0
);
"""


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0003_fleet_health")]

    operations = [
        migrations.RunSQL(_PARENT, "DROP TABLE monitoring_history;"),
        migrations.RunSQL(_PARTITIONS, migrations.RunSQL.noop),
        migrations.RunSQL(_ROOM, migrations.RunSQL.noop),
    ]
