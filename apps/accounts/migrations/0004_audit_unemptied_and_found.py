"""Emptying the audit trail as a whole is refused as well, and who did something is found by an index."""

import django.db.models.functions.text
from django.db import migrations, models

_TRIGGER = """
CREATE FUNCTION accounts_audit_not_emptied() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('ninefold.audit_retention', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'the audit trail cannot be emptied; audit_prune forgets what is old enough';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER accounts_audit_not_emptied BEFORE TRUNCATE ON accounts_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION accounts_audit_not_emptied();
"""
_NO_TRIGGER = """
DROP TRIGGER accounts_audit_not_emptied ON accounts_auditentry;
DROP FUNCTION accounts_audit_not_emptied();
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_append_only_and_staff")]

    operations = [
        migrations.RunSQL(_TRIGGER, _NO_TRIGGER),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(
                django.db.models.functions.text.Upper("actor_name"),
                models.OrderBy(models.F("id"), descending=True),
                name="audit_by_actor_any_case",
            ),
        ),
    ]
