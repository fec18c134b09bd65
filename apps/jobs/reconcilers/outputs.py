"""What a finished attempt made: from its manifest to rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.jobs.models import Attempt, Job
from apps.models.models import ModelVersion
from apps.models.services import outputs as registry
from controlplane.domain.jobs import JobKind
from controlplane.domain.models import Acceptance
from controlplane.domain.quantization import Verdict, verdict
from controlplane.domain.specs.evaluating import METRICS


def outputs_register(attempt: Attempt) -> str:
    """Turn the manifest into rows; say in words what was made.

    :raises RegistrationRefused: if the files are not what the job was to make.
    """
    job, manifest = attempt.job, attempt.manifest or {}
    files = [
        (file["path"], f"sha256:{file['sha256']}", int(file["size"])) for file in manifest["files"]
    ]
    origin = registry.Origin(
        team=job.team,
        actor=job.created_by,
        job_uid=job.uid,
        attempt_uid=attempt.uid,
        shared=job.output_shared,
    )
    if job.kind == JobKind.EVALUATE:
        evaluation = registry.evaluation_register(
            origin=origin,
            model_version=job.model_version,
            dataset_version=job.dataset_version,
            split=job.spec["split"],
            files=files,
            metrics=manifest.get("metrics", {}),
        )
        return f"evaluated {evaluation.model_version}"
    if job.output_name:
        version = registry.model_version_register(
            origin=origin,
            name=job.output_name,
            files=files,
            base=job.model_version,
            dataset_version=job.dataset_version,
            metrics=manifest.get("metrics", {}),
            verdict=_verdict(job, manifest.get("metrics", {})),
        )
        return _made(version)
    artifact = registry.outputs_register(origin=origin, files=files)
    return f"made {len(artifact.files)} files" if artifact.files else "finished"


def _verdict(job: Job, metrics: Mapping[str, Any]) -> Verdict | None:
    """Of a quantization; by the job's own tolerance, whatever the run says of itself."""
    if job.kind != JobKind.QUANTIZE:
        return None
    # An engine may take some of the fields only.
    wanted, tolerance = job.spec.get("metrics", METRICS), job.spec.get("tolerance")
    return verdict(metrics, wanted=wanted, tolerance=tolerance or {})


def _made(version: ModelVersion) -> str:
    if version.acceptance == Acceptance.REJECTED:
        return f"made {version}, which is not accepted: {version.acceptance_reason}"
    return f"made {version}"
