"""Secret environment variables of jobs: validation, encryption, deletion. Only a Launch reads their values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from apps.jobs.models import Job, SecretVariable
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import (
    FieldFinding,
    device_variable_error,
    field_finding,
    variable_name_error,
)
from controlplane.domain.jobs.lifecycle import JobState
from controlplane.persistence.encryption import encrypt
from controlplane.ports import adapter_registry

FIELD = "secret_variables"
MAX_VARIABLES = 32
#: A shorter value could not be masked in logs without masking ordinary text as well.
MIN_VALUE_LENGTH = 8
MAX_VALUE_LENGTH = 16_384
#: How long secret values and checkpoints of failed and cancelled jobs are retained for a retry, by default.
RETRY_RETENTION = timedelta(days=7)


def secret_variables_check(
    variables: Mapping[str, str], *, spec: Mapping[str, Any]
) -> list[FieldFinding]:
    """Findings for the variables; no message repeats a value."""
    messages = [_variable_error(name, value, spec=spec) for name, value in variables.items()]
    if len(variables) > MAX_VARIABLES:
        messages.append(f"must have at most {MAX_VARIABLES} entries, got {len(variables)}")
    return [FieldFinding(field=FIELD, message=message) for message in messages if message]


def _variable_error(name: str, value: str, *, spec: Mapping[str, Any]) -> str | None:
    if message := variable_name_error(name, at=FIELD):
        return message
    if adapter_registry.is_visible_devices_variable(name):
        return device_variable_error(name, at=FIELD)
    plain = spec.get("environment")
    if isinstance(plain, Mapping) and name in plain:
        return Reason(
            "job.secret_variable.duplicate",
            "{name} is also set in environment; remove one of the two",
            name=name,
        )
    if not MIN_VALUE_LENGTH <= len(value) <= MAX_VALUE_LENGTH or "\0" in value:
        return Reason(
            "job.secret_variable.invalid_value",
            "the value of {name} must have {minimum} to {maximum} characters and no "
            "NUL, got {length}; shorter values cannot be masked in logs",
            name=name,
            minimum=MIN_VALUE_LENGTH,
            maximum=MAX_VALUE_LENGTH,
            length=len(value),
        )
    return None


def secret_variables_store(*, job: Job, variables: Mapping[str, str]) -> None:
    SecretVariable.objects.bulk_create(
        SecretVariable(job=job, name=name, value=encrypt(value.encode()))
        for name, value in sorted(variables.items())
    )


def secret_variables_missing(job: Job) -> tuple[FieldFinding, ...]:
    """One finding for each variable whose value has been deleted since submission."""
    deleted = job.secret_variables.filter(value=None).values_list("name", flat=True)
    return tuple(
        field_finding(
            FIELD,
            "job.secret_variable.deleted",
            "the value of {name} has been deleted; clone the job and enter it again",
            name=name,
        )
        for name in deleted
    )


def secret_variables_delete(*, at: datetime) -> int:
    """Delete values that no further attempt of their job needs; return how many."""
    ended = Q(job__state=JobState.SUCCEEDED) | Q(job__ended_at__lte=at - RETRY_RETENTION)
    return SecretVariable.objects.filter(ended).exclude(value=None).update(value=None)
