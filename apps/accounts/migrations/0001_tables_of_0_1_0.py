"""The tables of version 0.1.0."""

from django.conf import settings
from django.contrib.auth.models import UserManager
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db import migrations, models
from django.db.models.functions import Upper
from django.utils import timezone

from controlplane.persistence.models import new_uid

_ID = (
    "id",
    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
)
_UID = ("uid", models.CharField(default=new_uid, editable=False, max_length=32, unique=True))
_UID_ROW = (_ID, _UID, ("created_at", models.DateTimeField(auto_now_add=True)))
_SOURCE = (
    "source",
    models.CharField(
        choices=[("local", "given here"), ("sign_on", "role from a group of the sign-on provider")],
        db_default="local",
        default="local",
        max_length=10,
    ),
)
#: The audit trail is append-only, and is not emptied as a whole.
_TRIGGERS = """
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
_NO_TRIGGERS = """
DROP TRIGGER accounts_audit_append_only ON accounts_auditentry;
DROP FUNCTION accounts_audit_append_only();
DROP TRIGGER accounts_audit_not_emptied ON accounts_auditentry;
DROP FUNCTION accounts_audit_not_emptied();
"""


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("accounts", "0001_initial"),
        ("accounts", "0002_people_and_sign_on"),
        ("accounts", "0003_append_only_and_staff"),
        ("accounts", "0004_audit_unemptied_and_found"),
        ("accounts", "0005_company_roles"),
    ]

    dependencies = [("auth", "0012_alter_user_first_name_max_length")]

    operations = [
        migrations.CreateModel(
            name="User",
            fields=[
                _ID,
                ("password", models.CharField(max_length=128, verbose_name="password")),
                (
                    "last_login",
                    models.DateTimeField(blank=True, null=True, verbose_name="last login"),
                ),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "A user with that username already exists."},
                        help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                        max_length=150,
                        unique=True,
                        validators=[UnicodeUsernameValidator()],
                        verbose_name="username",
                    ),
                ),
                (
                    "first_name",
                    models.CharField(blank=True, max_length=150, verbose_name="first name"),
                ),
                (
                    "last_name",
                    models.CharField(blank=True, max_length=150, verbose_name="last name"),
                ),
                (
                    "email",
                    models.EmailField(blank=True, max_length=254, verbose_name="email address"),
                ),
                (
                    "is_staff",
                    models.BooleanField(
                        default=False,
                        help_text="Designates whether the user can log into this admin site.",
                        verbose_name="staff status",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                        verbose_name="active",
                    ),
                ),
                (
                    "date_joined",
                    models.DateTimeField(default=timezone.now, verbose_name="date joined"),
                ),
                _UID,
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
                (
                    "language",
                    models.CharField(
                        blank=True,
                        choices=[("en", "English"), ("zh-hans", "简体中文")],
                        db_default="",
                        default="",
                        max_length=10,
                    ),
                ),
                (
                    "session_generation",
                    models.PositiveIntegerField(db_default=0, default=0, editable=False),
                ),
                (
                    "time_zone",
                    models.CharField(blank=True, db_default="", default="", max_length=64),
                ),
            ],
            options={"abstract": False, "verbose_name": "user", "verbose_name_plural": "users"},
            managers=[("objects", UserManager())],
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                _ID,
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("viewer", "viewer"),
                            ("engineer", "engineer"),
                            ("queue_admin", "queue admin"),
                            ("administrator", "administrator"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                _SOURCE,
            ],
        ),
        migrations.CreateModel(
            name="Team",
            fields=[
                *_UID_ROW,
                ("name", models.CharField(max_length=80, unique=True)),
                ("slug", models.SlugField(max_length=40, unique=True)),
                (
                    "members",
                    models.ManyToManyField(
                        related_name="teams",
                        through="accounts.Membership",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"ordering": ("name",)},
        ),
        migrations.CreateModel(
            name="PersonalToken",
            fields=[
                *_UID_ROW,
                ("name", models.CharField(max_length=80)),
                ("prefix", models.CharField(max_length=16)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="tokens", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "scopes",
                    models.JSONField(
                        db_default=models.Value(["all"], models.JSONField()), default=list
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=models.CASCADE, to="accounts.team"
                    ),
                ),
            ],
            options={"ordering": ("-id",)},
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                _ID,
                ("at", models.DateTimeField(auto_now_add=True)),
                ("actor_name", models.CharField(max_length=150)),
                ("action", models.CharField(max_length=60)),
                ("object_uid", models.CharField(blank=True, max_length=32)),
                ("object_name", models.CharField(blank=True, max_length=200)),
                ("detail", models.JSONField(blank=True, default=dict)),
                (
                    "actor",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=models.SET_NULL, to="accounts.team"
                    ),
                ),
                ("remote_address", models.GenericIPAddressField(blank=True, null=True)),
                (
                    "request_id",
                    models.CharField(blank=True, db_default="", default="", max_length=64),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["object_uid"], name="accounts_au_object__284f3a_idx"),
                    models.Index(fields=["team", "-id"], name="audit_by_team"),
                    models.Index(fields=["action", "-id"], name="audit_by_action"),
                    models.Index(fields=["actor_name", "-id"], name="audit_by_actor"),
                    models.Index(
                        Upper("actor_name"),
                        models.OrderBy(models.F("id"), descending=True),
                        name="audit_by_actor_any_case",
                    ),
                ],
                "ordering": ("-id",),
                "verbose_name_plural": "audit entries",
            },
        ),
        migrations.CreateModel(
            name="IdempotencyRecord",
            fields=[
                _ID,
                ("key", models.CharField(max_length=120)),
                ("fingerprint", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("body", models.JSONField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("user", models.ForeignKey(on_delete=models.CASCADE, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "key"), name="idempotency_once")
                ]
            },
        ),
        migrations.CreateModel(
            name="ExternalIdentity",
            fields=[
                _ID,
                ("issuer", models.CharField(max_length=255)),
                ("subject", models.CharField(max_length=255)),
                ("name", models.CharField(blank=True, max_length=255)),
                ("made_administrator", models.BooleanField(default=False)),
                ("linked_at", models.DateTimeField(auto_now_add=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="identities",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("issuer", "subject"), name="identity_bound_once"
                    ),
                    models.UniqueConstraint(
                        fields=("user", "issuer"), name="identity_one_per_issuer"
                    ),
                ],
                "verbose_name_plural": "external identities",
            },
        ),
        migrations.CreateModel(
            name="CompanyRoleBinding",
            fields=[
                _ID,
                ("role", models.CharField(choices=[("operator", "operator")], max_length=20)),
                _SOURCE,
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
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
                ]
            },
        ),
        migrations.AddField(
            model_name="membership",
            name="team",
            field=models.ForeignKey(
                on_delete=models.CASCADE, related_name="memberships", to="accounts.team"
            ),
        ),
        migrations.AddConstraint(
            model_name="membership",
            constraint=models.UniqueConstraint(
                fields=("user", "team", "role"), name="membership_once"
            ),
        ),
        migrations.RunSQL(_TRIGGERS, _NO_TRIGGERS),
    ]
