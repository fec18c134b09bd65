"""Users, teams and their roles, personal tokens, and the audit log."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models.functions import Upper
from django.utils.crypto import salted_hmac

from controlplane.domain.common.permissions import CompanyRole, Scope, TeamRole
from controlplane.persistence.models import UidModel, new_uid


class User(AbstractUser):
    """A user. ``is_superuser`` marks a company administrator, who administers every team."""

    uid = models.CharField(max_length=32, unique=True, default=new_uid, editable=False)
    #: Empty: the language of the browser.
    language = models.CharField(
        max_length=10, blank=True, default="", db_default="", choices=settings.LANGUAGES
    )
    #: Name of an IANA zone; empty: UTC.
    time_zone = models.CharField(max_length=64, blank=True, default="", db_default="")
    #: Part of what sessions are checked against: another value ends all of them.
    session_generation = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    #: While a request is authenticated by a token: the only team that it may see. Not stored.
    confined_to: Team | None = None

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """As Django's, over the generation too; the same as Django's while that is zero."""
        return salted_hmac(
            "django.contrib.auth.models.AbstractBaseUser.get_session_auth_hash",
            f"{self.password}{self.session_generation or ''}",
            secret=secret,
            algorithm="sha256",
        ).hexdigest()


class ExternalIdentity(models.Model):
    """An account at the OpenID provider, linked to one user.

    Identified by issuer and subject only: names and e-mail addresses are reassigned.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    #: The latest name from the provider, to tell identities apart.
    name = models.CharField(max_length=255, blank=True)
    #: They administer the company because of a group, and no longer than that.
    granted_administrator = models.BooleanField(default=False)
    linked_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "external identities"
        constraints = (
            models.UniqueConstraint(fields=("issuer", "subject"), name="identity_bound_once"),
            models.UniqueConstraint(fields=("user", "issuer"), name="identity_one_per_issuer"),
        )

    def __str__(self) -> str:
        return f"{self.name or self.subject} at {self.issuer}"


class Team(UidModel):
    """A team: the owner of jobs, models, datasets and deployments."""

    name = models.CharField(max_length=80, unique=True)
    slug = models.SlugField(max_length=40, unique=True)
    members = models.ManyToManyField(User, through="Membership", related_name="teams")

    class Meta:
        ordering = ("name",)


class Membership(models.Model):
    """One role of one user in one team."""

    ROLES = [(role.value, role.value.replace("_", " ")) for role in TeamRole]

    class GrantSource(models.TextChoices):
        """Who gave it."""

        LOCAL = "local", "given here"
        SIGN_ON = "sign_on", "role from a group of the sign-on provider"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=20, choices=ROLES)
    source = models.CharField(
        max_length=10,
        choices=GrantSource.choices,
        default=GrantSource.LOCAL,
        db_default=GrantSource.LOCAL,
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("user", "team", "role"), name="membership_once"),
        )

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.team}"


class CompanyRoleBinding(models.Model):
    """One role of one user in the whole company."""

    ROLES = [(role.value, role.value.replace("_", " ")) for role in CompanyRole]

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="company_role_bindings")
    role = models.CharField(max_length=20, choices=ROLES)
    source = models.CharField(
        max_length=10,
        choices=Membership.GrantSource.choices,
        default=Membership.GrantSource.LOCAL,
        db_default=Membership.GrantSource.LOCAL,
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("user", "role"), name="company_role_binding_once"),
        )

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of the company"


class PersonalToken(UidModel):
    """A token with which a program acts as its owner on REST. Only the digest is stored."""

    SCOPES = [(scope.value, scope.value) for scope in Scope]

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80)
    #: The first characters, to tell tokens apart.
    prefix = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    #: Codes of :class:`Scope`. Tokens from before scopes existed have all of them.
    scopes = models.JSONField(
        default=list, db_default=models.Value([Scope.ALL.value], models.JSONField())
    )
    #: The only team that it may see; null: every team of its owner.
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def scope_set(self) -> frozenset[Scope]:
        """Scopes that this version of the product knows."""
        return frozenset(Scope(code) for code in self.scopes if code in set(Scope))


class AuditEntry(models.Model):
    """Who changed what. Append-only, which a trigger of the database sees to as well."""

    at = models.DateTimeField(auto_now_add=True)
    actor = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True)
    #: Stored beside the key, so that it outlives the account.
    actor_name = models.CharField(max_length=150)
    team = models.ForeignKey(Team, on_delete=models.SET_NULL, null=True, blank=True)
    #: A verb and its object, ``job.cancel``.
    action = models.CharField(max_length=60)
    object_uid = models.CharField(max_length=32, blank=True)
    object_name = models.CharField(max_length=200, blank=True)
    detail = models.JSONField(default=dict, blank=True)
    #: Of the request behind the change; null for changes by controllers.
    remote_address = models.GenericIPAddressField(null=True, blank=True)
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "audit entries"
        indexes = (
            models.Index(fields=("object_uid",)),
            models.Index(fields=("team", "-id"), name="audit_by_team"),
            models.Index(fields=("action", "-id"), name="audit_by_action"),
            models.Index(fields=("actor_name", "-id"), name="audit_by_actor"),
            # Filters compare names case-insensitively.
            models.Index(
                Upper("actor_name"), models.F("id").desc(), name="audit_by_actor_any_case"
            ),
        )

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise TypeError("an audit entry is append-only")
        super().save(*args, **kwargs)

    def __str__(self) -> str:
        return f"{self.actor_name}: {self.action} {self.object_name}"


class IdempotencyRecord(models.Model):
    """What was answered to a POST that carried an ``Idempotency-Key``."""

    user = models.ForeignKey(User, on_delete=models.CASCADE)
    key = models.CharField(max_length=120)
    #: Digest of method, path and body: the same key with another request is refused.
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "key"), name="idempotency_once"),)

    def __str__(self) -> str:
        return self.key


class DeviceAuthorization(UidModel):
    """A sign-in of a program without a browser, which a user approves by its code (RFC 8628)."""

    class DeviceDecision(models.TextChoices):
        PENDING = "pending", "pending"
        APPROVED = "approved", "approved"
        DENIED = "denied", "denied"
        #: The token was issued.
        REDEEMED = "redeemed", "redeemed"

    #: Of the device code, which only the program has.
    digest = models.CharField(max_length=64, unique=True)
    #: What the user compares and enters, without its hyphen.
    user_code = models.CharField(max_length=16, unique=True)
    decision = models.CharField(
        max_length=10, choices=DeviceDecision.choices, default=DeviceDecision.PENDING
    )
    #: Who decided; the owner of the token.
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, blank=True)
    scopes = models.JSONField()
    #: Name of the computer, as the program says.
    host = models.CharField(max_length=100, blank=True)
    remote_address = models.GenericIPAddressField(null=True, blank=True)
    expires_at = models.DateTimeField()
    #: Seconds between two requests for the token.
    interval = models.PositiveSmallIntegerField()
    polled_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.user_code} ({self.decision})"


class ApplySet(UidModel):
    """The objects that a set of documents created or changed, recorded for ``ninefold apply --prune``."""

    name = models.SlugField(max_length=80)
    #: Null: a set of the company.
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, blank=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    #: Grows with each change: a writer names the version that it has read.
    version = models.PositiveIntegerField(default=1)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("team", "name"), name="apply_set_once", nulls_distinct=False
            ),
        )


class ApplySetObject(models.Model):
    """An object of an apply set, by the kind of its document. An object is in one set only."""

    apply_set = models.ForeignKey(ApplySet, on_delete=models.CASCADE, related_name="objects_of_set")
    kind = models.CharField(max_length=40)
    object_uid = models.CharField(max_length=80)
    name = models.CharField(max_length=200)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(fields=("kind", "object_uid"), name="apply_set_object_once"),
        )

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"
