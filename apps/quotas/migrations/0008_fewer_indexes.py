import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# Every state of every claim is an entry in each of its indexes.
#
# Nobody looks for the beginning of a uid; the unique index finds whole ones.
_NO_BEGINNINGS = "DROP INDEX IF EXISTS quotas_claim_uid_ab7e1642_like;"
_BEGINNINGS = (
    "CREATE INDEX quotas_claim_uid_ab7e1642_like ON quotas_claim (uid varchar_pattern_ops);"
)
# A new reason is in no index: with room on its page the new version stays there (HOT), and dead versions are
# cleaned up in passing.
_ROOM = "ALTER TABLE quotas_claim SET (fillfactor = 80);"
_NO_ROOM = "ALTER TABLE quotas_claim RESET (fillfactor);"


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_audit_unemptied_and_found"),
        ("quotas", "0001_tables_of_0_1_0"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        # First: claims can still be read while it is made, and no longer once the others are dropped.
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(
                condition=models.Q(("revoked_for__isnull", False)),
                fields=["revoked_for"],
                name="claim_heirs",
            ),
        ),
        migrations.AlterField(
            model_name="claim",
            name="person",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="claims",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="claim",
            name="revoked_for",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="beneficiary_of",
                to="quotas.claim",
            ),
        ),
        migrations.RunSQL(_NO_BEGINNINGS, _BEGINNINGS),
        migrations.RunSQL(_ROOM, _NO_ROOM),
    ]
