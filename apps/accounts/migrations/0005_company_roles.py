"""The fleet is operated by a company role; team operators become viewers of their team."""

import django.db.models.deletion
from django.apps.registry import Apps as StateApps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def team_operators_to_viewers(apps: StateApps, _editor: BaseDatabaseSchemaEditor) -> None:
    """Nobody gains power over the fleet here: the audit entries list who may need the company role."""
    memberships = apps.get_model("accounts", "Membership").objects
    entries = apps.get_model("accounts", "AuditEntry").objects
    for row in memberships.filter(role="operator").select_related("user", "team"):
        others = memberships.filter(user=row.user, team=row.team).exclude(pk=row.pk)
        before = sorted([*others.values_list("role", flat=True), "operator"])
        if others.exists():
            row.delete()
        else:
            row.role = "viewer"
            row.save(update_fields=["role"])
        roles = memberships.filter(user=row.user, team=row.team).values_list("role", flat=True)
        entries.create(
            actor_name="system",
            team=row.team,
            action="membership.migrate",
            object_uid=row.user.uid,
            object_name=row.user.username,
            detail={"roles": sorted(roles), "before": before},
        )
        administers = memberships.filter(user=row.user, role__in=("queue_admin", "administrator"))
        if not row.user.is_superuser and not administers.exists():
            row.user.is_staff = False
            row.user.save(update_fields=["is_staff"])


class Migration(migrations.Migration):
    dependencies = [("accounts", "0004_audit_unemptied_and_found")]

    operations = [
        migrations.CreateModel(
            name="CompanyRoleBinding",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("role", models.CharField(choices=[("operator", "operator")], max_length=20)),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("local", "given here"),
                            ("sign_on", "role from a group of the sign-on provider"),
                        ],
                        db_default="local",
                        default="local",
                        max_length=10,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="company_role_bindings",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "role"), name="company_role_binding_once"
                    )
                ],
            },
        ),
        migrations.RunPython(team_operators_to_viewers, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="membership",
            name="role",
            field=models.CharField(
                choices=[
                    ("viewer", "viewer"),
                    ("engineer", "engineer"),
                    ("queue_admin", "queue admin"),
                    ("administrator", "administrator"),
                ],
                max_length=20,
            ),
        ),
    ]
