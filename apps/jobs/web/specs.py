"""What was asked for: as rows, as JSON, and as the call of REST that asks for it again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from apps.jobs.models import Job
from controlplane.domain.claims import GangShape
from controlplane.domain.retries import RetryPolicy


def spec_rows(spec: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """The fields of the spec in a line each, those of a group behind the group's name."""
    rows: list[tuple[str, Any]] = []
    for name, value in sorted(spec.items()):
        if isinstance(value, Mapping):
            rows += spec_rows(value, f"{prefix}{name} ")
        else:
            rows.append((prefix + name, value))
    return rows


def request_of(job: Job) -> dict[str, Any]:
    """The body of ``POST /api/v1/jobs`` that asks for the same; what has its default is left out."""
    shape = GangShape.from_json(job.shape)
    asked: dict[str, Any] = {
        "kind": job.kind,
        "name": job.name,
        "team": job.team.uid,
        "queue": job.queue.name,
        "engine": job.engine,
        "model_version": job.model_version.uid if job.model_version else None,
        "dataset_version": job.dataset_version.uid if job.dataset_version else None,
        "code": job.code.uid if job.code else None,
        "output_name": job.output_name or None,
        "output_shared": job.output_shared or None,
        "chips": job.asked_chips or job.chips,
        "cards": shape.cards,
        "memory": shape.roles[0].limits.memory or None,
        "priority": job.priority or None,
        "run_seconds": job.run_seconds,
        "retry_policy": _changed_retry_policy(job) or None,
        "spec": _without_nothing(job.spec),
        # Values are not known here: whoever asks again puts them in.
        "secret_variables": [
            {"name": each.name, "value": ""} for each in job.secret_variables.all()
        ]
        or None,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _changed_retry_policy(job: Job) -> dict[str, Any]:
    defaults = RetryPolicy.from_json({}).as_json()
    policy = job.resolved_retry_policy.as_json()
    return {name: value for name, value in policy.items() if value != defaults[name]}


def _without_nothing(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _without_nothing(value) if isinstance(value, Mapping) else value
        for name, value in spec.items()
        if value is not None
    }


def spec_json(job: Job) -> str:
    return json.dumps(request_of(job), ensure_ascii=False, indent=2)


def repeated(job: Job, *, url: str) -> str:
    """For a shell; the token comes from the environment, so that it is not kept with the command."""
    return (
        f"curl -X POST {url} \\\n"
        '  -H "Authorization: Bearer $NINEFOLD_TOKEN" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(spec_json(job))}"
    )
