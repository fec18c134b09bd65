"""Users, teams and their roles, personal tokens, and the audit trail."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db import models

from controlplane.domain.permissions import Role
from controlplane.persistence.models import Entity, new_uid


class User(AbstractUser):
    """A person. ``is_superuser`` is an administrator of every team."""

    uid = models.CharField(max_length=32, unique=True, default=new_uid, editable=False)


class Team(Entity):
    """The owner of everything that people make."""

    name = models.CharField(max_length=80, unique=True)
    slug = models.SlugField(max_length=40, unique=True)
    members = models.ManyToManyField(User, through="Membership", related_name="teams")

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One role of one person in one team."""

    ROLES = [(role.value, role.value.replace("_", " ")) for role in Role]

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=20, choices=ROLES)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("user", "team", "role"), name="membership_once"),
        )

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.team}"


class PersonalToken(Entity):
    """Lets a program act as its owner on REST. Only the digest is kept."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80)
    #: The first characters, to tell tokens apart.
    prefix = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class AuditEntry(models.Model):
    """Who changed what. Append-only."""

    at = models.DateTimeField(auto_now_add=True)
    actor = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True)
    #: Kept beside the key, so that it outlives the account.
    actor_name = models.CharField(max_length=150)
    team = models.ForeignKey(Team, on_delete=models.SET_NULL, null=True, blank=True)
    #: A verb and its object, ``job.cancel``.
    action = models.CharField(max_length=60)
    object_uid = models.CharField(max_length=32, blank=True)
    object_name = models.CharField(max_length=200, blank=True)
    detail = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "audit entries"
        indexes = (models.Index(fields=("object_uid",)),)

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
