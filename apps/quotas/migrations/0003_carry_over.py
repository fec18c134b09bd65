"""Caps become entitlements, closed queues stay closed, the ledger begins, complete and unchangeable."""

from django.db import migrations

_CARRY_OVER = """
INSERT INTO quotas_entitlement (queue_id, chip, reserved, guaranteed, cap)
SELECT queue.id, stated.key, 0, 0, stated.value::integer
  FROM quotas_queue AS queue, jsonb_each_text(queue.caps) AS stated;
UPDATE quotas_queue SET state = 'closed' WHERE NOT open;
"""

# Before the rows: a table with checks of foreign keys still to come takes no triggers.
_TRIGGERS = """
CREATE FUNCTION quotas_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A backup that is restored brings its own rows.
    IF TG_OP = 'TRUNCATE' AND current_setting('ninefold.audit_retention', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'a row of % is a record of what happened: it cannot be changed or deleted', TG_TABLE_NAME;
END
$$;
CREATE TRIGGER quotas_usage_append_only BEFORE UPDATE OR DELETE ON quotas_usagerecord
    FOR EACH ROW EXECUTE FUNCTION quotas_append_only();
CREATE TRIGGER quotas_usage_not_emptied BEFORE TRUNCATE ON quotas_usagerecord
    FOR EACH STATEMENT EXECUTE FUNCTION quotas_append_only();
ALTER TABLE quotas_usagerecord
    ADD CONSTRAINT usage_record_exact
        CHECK (card_microseconds = cards * extract(epoch FROM until - since) * 1000000),
    ADD CONSTRAINT usage_record_of_one_day
        CHECK (until AT TIME ZONE 'UTC' <= date_trunc('day', since AT TIME ZONE 'UTC') + interval '1 day');
"""
_NO_TRIGGERS = """
ALTER TABLE quotas_usagerecord
    DROP CONSTRAINT usage_record_exact,
    DROP CONSTRAINT usage_record_of_one_day;
DROP TRIGGER quotas_usage_append_only ON quotas_usagerecord;
DROP TRIGGER quotas_usage_not_emptied ON quotas_usagerecord;
DROP FUNCTION quotas_append_only();
"""

# What was held and given back is in the ledger from its first day; what is held still begins with its admission.
BOOKS = """
UPDATE quotas_claim
   SET work_kind = CASE owner_kind WHEN 'attempt' THEN 'job' ELSE 'deployment' END
 WHERE work_kind = '' AND owner_kind IN ('attempt', 'replica');
UPDATE quotas_claim SET metered_until = admitted_at WHERE state IN ('admitted', 'revoking');
UPDATE quotas_claim SET metered_until = released_at WHERE state = 'released' AND admitted_at IS NOT NULL;
INSERT INTO quotas_usagerecord
       (claim_id, queue_id, team_id, person_id, chip, work_kind, work_uid, work_name,
        cards, since, until, card_microseconds)
SELECT claim.id, claim.queue_id, claim.team_id, claim.person_id, held.chip,
       claim.work_kind, claim.work_uid, claim.work_name, held.cards, piece.since, piece.until,
       held.cards * (extract(epoch FROM piece.until - piece.since) * 1000000)::bigint
  FROM (SELECT allocation.claim_id, card.chip, allocation.allocated_at, allocation.released_at, count(*) AS cards
          FROM quotas_allocation AS allocation JOIN fleet_card AS card ON card.id = allocation.card_id
         WHERE allocation.released_at > allocation.allocated_at
         GROUP BY 1, 2, 3, 4) AS held
  JOIN quotas_claim AS claim ON claim.id = held.claim_id AND claim.state = 'released',
       LATERAL (
           SELECT greatest(held.allocated_at, day AT TIME ZONE 'UTC') AS since,
                  least(held.released_at, (day + interval '1 day') AT TIME ZONE 'UTC') AS until
             FROM generate_series(date_trunc('day', held.allocated_at AT TIME ZONE 'UTC'),
                                  held.released_at AT TIME ZONE 'UTC', interval '1 day') AS day
       ) AS piece
 WHERE piece.until > piece.since
 ORDER BY piece.until, claim.id;
"""


class Migration(migrations.Migration):
    dependencies = [("quotas", "0002_tree_and_ledger"), ("fleet", "0001_initial")]

    operations = [
        migrations.RunSQL(_TRIGGERS, _NO_TRIGGERS),
        migrations.RunSQL(_CARRY_OVER, migrations.RunSQL.noop),
        migrations.RunSQL(BOOKS, migrations.RunSQL.noop),
    ]
