"""Registration of job outputs: model versions, evaluations and files. Each is keyed by its attempt, so it is
idempotent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.accounts.models import Team, User
from apps.accounts.services import record_audit_entry
from apps.models.models import Artifact, ArtifactKind, DatasetVersion, Evaluation, ModelVersion
from apps.models.services.artifact_storage import File, RegistrationRefused, artifact_create
from apps.models.services.catalog import version_columns_from_config
from apps.models.services.model_versions import read_model_files, reserve_model_version_number
from controlplane.domain.quantization.schemes import QuantizationVerdict
from controlplane.domain.registry.versions import MODEL, ModelEvent, ModelRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOrigin:
    """The user, team and attempt that created an output."""

    team: Team
    actor: User
    job_uid: str
    attempt_uid: str
    #: Every team may use the model.
    shared: bool = False


def model_version_register(
    *,
    origin: OutputOrigin,
    name: str,
    files: Sequence[File],
    base: ModelVersion | None,
    dataset_version: DatasetVersion | None,
    metrics: Mapping[str, Any],
    verdict: QuantizationVerdict | None = None,
) -> ModelVersion:
    """Register the model version of an attempt; return the existing one if called again.

    With a verdict the version is a quantized one, accepted or rejected by that verdict.

    :raises RegistrationRefused: if the files are not a model, or not quantized although they should be.
    """
    known = ModelVersion.objects.filter(attempt_uid=origin.attempt_uid).first()
    if known is not None:
        return known
    try:
        config, parameters = read_model_files(files)
    except ModelRefused as refusal:
        raise RegistrationRefused(
            "attempt.output.not_a_model",
            "the output of the job is not a model: {reason}",
            reason=str(refusal),
        ) from None
    facts = version_columns_from_config(config=config, parameters=parameters)
    if base is not None:
        facts["catalog_model"] = base.catalog_model
    if verdict is not None:
        facts |= _quantization_facts(verdict, facts, base=base)
    line, number = reserve_model_version_number(
        team=None if origin.shared else origin.team, name=name
    )
    version = ModelVersion.objects.create(
        line=line,
        number=number,
        state=MODEL.after(MODEL.initial, ModelEvent.IMPORT),
        artifact=artifact_create(
            team=origin.team,
            kind=ArtifactKind.MODEL,
            files=files,
            created_by=f"attempt:{origin.attempt_uid}",
        ),
        **facts,
        base=base,
        dataset_version=dataset_version,
        job_uid=origin.job_uid,
        attempt_uid=origin.attempt_uid,
        metrics=dict(metrics),
        created_by=origin.actor,
    )
    record_audit_entry(
        version, actor=origin.actor, action="model.register", team=origin.team, job=origin.job_uid
    )
    return version


def _quantization_facts(
    verdict: QuantizationVerdict, facts: Mapping[str, Any], *, base: ModelVersion | None
) -> dict[str, Any]:
    """:raises RegistrationRefused: if the weights are not quantized."""
    if not facts["format"]:
        raise RegistrationRefused(
            "attempt.output.not_quantized",
            "the output of the job is not quantized: its config.json has no quantization_config",
        )
    quantized = {"acceptance": verdict.acceptance, "acceptance_reason": verdict.reason}
    # Quantized weights are packed, so the parameter count is taken from the base.
    return quantized | ({"parameters": base.parameters} if base is not None else {})


def evaluation_register(
    *,
    origin: OutputOrigin,
    model_version: ModelVersion | None,
    dataset_version: DatasetVersion | None,
    split: str,
    files: Sequence[File],
    metrics: Mapping[str, Any],
) -> Evaluation:
    """Register the evaluation of an attempt; return the existing one if called again.

    :raises RegistrationRefused: if the model version or dataset version is missing.
    """
    if model_version is None or dataset_version is None:
        raise RegistrationRefused(
            "evaluation.inputs.missing",
            "an evaluation requires a model version and a dataset version",
        )
    known = Evaluation.objects.filter(attempt_uid=origin.attempt_uid).first()
    if known is not None:
        return known
    return Evaluation.objects.create(
        model_version=model_version,
        dataset_version=dataset_version,
        split=split,
        metrics=dict(metrics),
        artifact=artifact_create(
            team=origin.team,
            kind=ArtifactKind.REPORT,
            files=files,
            created_by=f"attempt:{origin.attempt_uid}",
        ),
        job_uid=origin.job_uid,
        attempt_uid=origin.attempt_uid,
    )


def script_outputs_register(*, origin: OutputOrigin, files: Sequence[File]) -> Artifact:
    """Register the output folder of a script job; return the existing artifact if called again."""
    created_by = f"attempt:{origin.attempt_uid}"
    known = Artifact.objects.filter(created_by=created_by).first()
    return known or artifact_create(
        team=origin.team, kind=ArtifactKind.OUTPUTS, files=files, created_by=created_by
    )
