"""Abstract models that the apps share, and the tables of leases and controller states."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from controlplane.domain.health.controllers import ControllerRunTimes
from controlplane.persistence.reasons import ReasonField


class Lease(models.Model):
    """A leader lease: the right to run one named controller, for a limited time.

    ``token`` only ever grows; writers under the lease check that it is still the newest, so a holder of an
    expired lease cannot write (a fencing token).
    """

    name = models.CharField(max_length=80, primary_key=True)
    holder = models.CharField(max_length=120)
    token = models.BigIntegerField(default=0)
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "persistence_lease"

    def __str__(self) -> str:
        return f"{self.name} held by {self.holder}"


class ControllerState(models.Model):
    """Reconcile runs of one controller: see ``controlplane.persistence.reconcile_runs``."""

    #: Name of its task.
    name = models.CharField(max_length=120, primary_key=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    succeeded_at = models.DateTimeField(null=True, blank=True)
    #: Failed runs since the last successful one.
    failures = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    #: Number of objects that the last successful run handled; None where the task returns none.
    handled = models.BigIntegerField(null=True, blank=True)
    #: Counters since the row was created.
    runs = models.BigIntegerField(default=0)
    failed_runs = models.BigIntegerField(default=0)
    seconds = models.FloatField(default=0.0)
    #: Seconds of the latest runs, the latest first.
    recent = ArrayField(models.FloatField(), default=list, blank=True)

    class Meta:
        db_table = "persistence_loop_state"

    def __str__(self) -> str:
        return self.name

    @property
    def times(self) -> ControllerRunTimes:
        return ControllerRunTimes(
            started_at=self.started_at,
            ended_at=self.ended_at,
            succeeded_at=self.succeeded_at,
            failures=self.failures,
        )


def new_uid() -> str:
    """32 hexadecimal digits; the public name of a row."""
    return uuid.uuid4().hex


class UidModel(models.Model):
    """A row with a public name. Primary keys stay inside; URLs and other systems see ``uid``."""

    uid = models.CharField(max_length=32, unique=True, default=new_uid, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return str(getattr(self, "name", self.uid))


class LeasedModel(models.Model):
    """A row that a reconciler works on alone: see ``controlplane.persistence.leases``."""

    leased_until = models.DateTimeField(null=True, blank=True, editable=False)
    lease_token = models.BigIntegerField(default=0, editable=False)

    class Meta:
        abstract = True


class VersionedModel(models.Model):
    """A row whose changes readers recognise: see ``controlplane.persistence.row_versions``."""

    row_version = models.BigIntegerField(
        db_default=models.Func(
            models.Value("persistence_row_version"),
            function="nextval",
            output_field=models.BigIntegerField(),
        ),
        editable=False,
    )

    class Meta:
        abstract = True


class Transition(models.Model):
    """One transition of a state machine. Append-only: never changed, never deleted while its entity exists."""

    from_state = models.CharField(max_length=20)
    event = models.CharField(max_length=20)
    to_state = models.CharField(max_length=20)
    #: The reason, as a message for users.
    reason = ReasonField()
    actor = models.CharField(max_length=150, blank=True)
    at = models.DateTimeField()

    #: The name of the foreign key to the entity, set by each concrete table.
    entity_field: ClassVar[str] = "entity"

    class Meta:
        abstract = True
        ordering = ("id",)

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise TypeError("a transition is append-only")
        super().save(*args, **kwargs)

    def __str__(self) -> str:
        return f"{self.from_state} → {self.to_state} ({self.event})"
