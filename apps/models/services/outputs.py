"""What runs make: model versions, evaluations, files. Each is keyed by its attempt, so it happens once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.accounts.models import Team, User
from apps.accounts.services import audit
from apps.models.models import Artifact, DatasetVersion, Evaluation, ModelVersion
from apps.models.services.artifacts import File, RegistrationRefused, artifact_create
from apps.models.services.catalog import version_facts
from apps.models.services.versions import facts_of, line_with_next_number
from controlplane.domain.models import MODEL, ModelEvent, ModelRefused
from controlplane.domain.quantization import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who made something, and by which run."""

    team: Team
    actor: User
    job_uid: str
    attempt_uid: str
    #: Every team may use the model.
    shared: bool = False


def model_version_register(
    *,
    origin: Origin,
    name: str,
    files: Sequence[File],
    base: ModelVersion | None,
    dataset_version: DatasetVersion | None,
    metrics: Mapping[str, Any],
    verdict: Verdict | None = None,
) -> ModelVersion:
    """The version that an attempt made; the same one when asked again.

    With a verdict it is one that was quantized, and accepted or not as that says.

    :raises RegistrationRefused: if the files are no model, or plain weights where quantized ones were to be.
    """
    known = ModelVersion.objects.filter(attempt_uid=origin.attempt_uid).first()
    if known is not None:
        return known
    try:
        config, parameters = facts_of(files)
    except ModelRefused as refusal:
        raise RegistrationRefused(f"what it made is no model: {refusal}") from None
    facts = version_facts(config=config, parameters=parameters)
    if base is not None:
        facts["catalog_model"] = base.catalog_model
    if verdict is not None:
        facts |= _quantized(verdict, facts, base=base)
    line, number = line_with_next_number(team=None if origin.shared else origin.team, name=name)
    version = ModelVersion.objects.create(
        line=line,
        number=number,
        state=MODEL.after(MODEL.initial, ModelEvent.IMPORT),
        artifact=artifact_create(
            team=origin.team,
            kind=Artifact.Kind.MODEL,
            files=files,
            made_by=f"attempt:{origin.attempt_uid}",
        ),
        **facts,
        base=base,
        dataset_version=dataset_version,
        job_uid=origin.job_uid,
        attempt_uid=origin.attempt_uid,
        metrics=dict(metrics),
        created_by=origin.actor,
    )
    audit(
        actor=origin.actor,
        action="model.register",
        team=origin.team,
        uid=version.uid,
        name=str(version),
        job=origin.job_uid,
    )
    return version


def _quantized(
    verdict: Verdict, facts: Mapping[str, Any], *, base: ModelVersion | None
) -> dict[str, Any]:
    """:raises RegistrationRefused: if the weights are plain."""
    if not facts["format"]:
        raise RegistrationRefused(
            "what it made is not quantized: its config.json has no quantization_config"
        )
    quantized = {"acceptance": verdict.acceptance, "acceptance_reason": verdict.reason}
    # Several weights are packed into one stored number; there are as many as before.
    return quantized | ({"parameters": base.parameters} if base is not None else {})


def evaluation_register(
    *,
    origin: Origin,
    model_version: ModelVersion | None,
    dataset_version: DatasetVersion | None,
    split: str,
    files: Sequence[File],
    metrics: Mapping[str, Any],
) -> Evaluation:
    """The evaluation that an attempt made; the same one when asked again.

    :raises RegistrationRefused: if there is nothing that it evaluated.
    """
    if model_version is None or dataset_version is None:
        raise RegistrationRefused("an evaluation needs a model version and a dataset version")
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
            kind=Artifact.Kind.REPORT,
            files=files,
            made_by=f"attempt:{origin.attempt_uid}",
        ),
        job_uid=origin.job_uid,
        attempt_uid=origin.attempt_uid,
    )


def outputs_register(*, origin: Origin, files: Sequence[File]) -> Artifact:
    """What a script left in its output folder; the same artifact when asked again."""
    made_by = f"attempt:{origin.attempt_uid}"
    known = Artifact.objects.filter(made_by=made_by).first()
    return known or artifact_create(
        team=origin.team, kind=Artifact.Kind.OUTPUTS, files=files, made_by=made_by
    )
