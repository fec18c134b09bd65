"""The audit trail becomes append-only in the database, and who may enter the admin follows from roles."""

from django.apps.registry import Apps as StateApps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_TRIGGER = """
CREATE FUNCTION accounts_audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    allowed accounts_auditentry%ROWTYPE;
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF current_setting('ninefold.audit_retention', true) = 'on' THEN
            RETURN OLD;
        END IF;
        RAISE EXCEPTION 'an audit entry cannot be deleted; audit_prune forgets what is old enough';
    END IF;
    allowed := OLD;
    -- The entry outlives the account and the team that it refers to.
    IF NEW.actor_id IS NULL THEN allowed.actor_id := NULL; END IF;
    IF NEW.team_id IS NULL THEN allowed.team_id := NULL; END IF;
    IF NEW IS DISTINCT FROM allowed THEN
        RAISE EXCEPTION 'an audit entry cannot be changed';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER accounts_audit_append_only BEFORE UPDATE OR DELETE ON accounts_auditentry
    FOR EACH ROW EXECUTE FUNCTION accounts_audit_append_only();
"""
_NO_TRIGGER = """
DROP TRIGGER accounts_audit_append_only ON accounts_auditentry;
DROP FUNCTION accounts_audit_append_only();
"""
#: As they were when this was written; services keep it true from here on.
_ADMIN_ROLES = ("queue_admin", "operator", "administrator")


def derive_staff(apps: StateApps, _editor: BaseDatabaseSchemaEditor) -> None:
    users = apps.get_model("accounts", "User").objects
    users.filter(memberships__role__in=_ADMIN_ROLES, is_staff=False).update(is_staff=True)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_people_and_sign_on")]

    operations = [
        migrations.RunSQL(_TRIGGER, _NO_TRIGGER),
        migrations.RunPython(derive_staff, migrations.RunPython.noop),
    ]
