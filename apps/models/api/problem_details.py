"""Problem details of dataset, model, hub, sizing and storage errors."""

from __future__ import annotations

from apps.models.selectors import ArtifactFileMissing
from apps.models.selectors.sizing import SizingRefused
from apps.models.services.artifact_storage import DeletionRefused, RegistrationRefused
from apps.models.services.dataset_and_model_changes import ChangeRefused
from apps.models.services.datasets import DuplicateUpload
from apps.models.services.model_versions import GateOverrideRefused
from controlplane.domain.datasets import DatasetRefused
from controlplane.domain.outbound.egress import EgressRefused
from controlplane.domain.registry.model_hubs import HubImportRefused
from controlplane.domain.registry.versions import ModelRefused
from controlplane.domain.storage.team_storage import StorageQuotaExceeded
from controlplane.ports.model_hubs import HubUnreachable
from controlplane.web.problem_details import ProblemDetails, problem_translator, register_problem


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


register_problem(ModelRefused, code="model-refused")
register_problem(HubImportRefused, code="hub-refused")
register_problem(EgressRefused, code="address-refused")
register_problem(HubUnreachable, code="hub-unreachable", status=502)
register_problem(SizingRefused, code="sizing-refused")
register_problem(RegistrationRefused, code="registration-refused")
register_problem(ChangeRefused, code="change-refused", status=409)
register_problem(GateOverrideRefused, code="acceptance-refused", status=409)


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


register_problem(ArtifactFileMissing, code="not-found", status=404)
