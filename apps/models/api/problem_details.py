"""Problem details of dataset, model, hub, sizing and storage errors."""

from __future__ import annotations

from apps.models.selectors import ArtifactFileMissing
from apps.models.selectors.sizing import SizingRefused
from apps.models.services.artifact_storage import DeletionRefused, RegistrationRefused
from apps.models.services.datasets import DuplicateUpload
from apps.models.services.model_versions import GateOverrideRefused
from controlplane.domain.datasets import DatasetRefused
from controlplane.domain.outbound.egress import EgressRefused
from controlplane.domain.registry.model_hubs import HubImportRefused
from controlplane.domain.registry.versions import ModelRefused
from controlplane.domain.storage.usage import StorageQuotaExceeded
from controlplane.ports.model_hubs import HubUnreachable
from controlplane.web.problem_details import ProblemDetails, problem_translator


@problem_translator(DatasetRefused)
def _dataset_problem(error: DatasetRefused) -> ProblemDetails:
    return ProblemDetails(
        status=422,
        code="dataset-refused",
        detail=str(error),
        errors=[
            {"row": problem.row, "field": problem.column, "message": problem.message}
            for problem in error.problems
        ],
        extensions={"total": error.total},
    )


@problem_translator(DuplicateUpload)
def _duplicate_upload_problem(error: DuplicateUpload) -> ProblemDetails:
    existing = {"uid": error.existing.uid, "name": str(error.existing)}
    return ProblemDetails(
        status=409,
        code="duplicate-upload",
        detail=str(error),
        extensions={"existing": existing},
    )


@problem_translator(ModelRefused)
def _model_problem(error: ModelRefused) -> ProblemDetails:
    return ProblemDetails(status=422, code="model-refused", detail=str(error))


@problem_translator(HubImportRefused)
def _hub_problem(error: HubImportRefused) -> ProblemDetails:
    return ProblemDetails(status=422, code="hub-refused", detail=str(error))


@problem_translator(EgressRefused)
def _egress_problem(error: EgressRefused) -> ProblemDetails:
    return ProblemDetails(status=422, code="address-refused", detail=str(error))


@problem_translator(HubUnreachable)
def _hub_unreachable_problem(error: HubUnreachable) -> ProblemDetails:
    return ProblemDetails(status=502, code="hub-unreachable", detail=str(error))


@problem_translator(SizingRefused)
def _sizing_problem(error: SizingRefused) -> ProblemDetails:
    return ProblemDetails(
        status=422,
        code="sizing-refused",
        detail=str(error),
        errors=[{"field": finding.field, "message": finding.message} for finding in error.findings],
    )


@problem_translator(RegistrationRefused)
def _registration_problem(error: RegistrationRefused) -> ProblemDetails:
    return ProblemDetails(status=422, code="registration-refused", detail=str(error))


@problem_translator(GateOverrideRefused)
def _gate_override_problem(error: GateOverrideRefused) -> ProblemDetails:
    return ProblemDetails(status=409, code="acceptance-refused", detail=str(error))


@problem_translator(StorageQuotaExceeded)
def _storage_quota_exceeded_problem(error: StorageQuotaExceeded) -> ProblemDetails:
    extensions = {"used": error.use.used, "limit": error.use.limit, "wanted": error.requested}
    return ProblemDetails(
        status=409, code="storage-quota-exceeded", detail=str(error), extensions=extensions
    )


@problem_translator(DeletionRefused)
def _deletion_problem(error: DeletionRefused) -> ProblemDetails:
    return ProblemDetails(
        status=409,
        code="deletion-refused",
        detail=str(error),
        extensions={"reasons": list(error.reasons)},
    )


@problem_translator(ArtifactFileMissing)
def _artifact_file_missing_problem(error: ArtifactFileMissing) -> ProblemDetails:
    return ProblemDetails(status=404, code="not-found", detail=str(error))
