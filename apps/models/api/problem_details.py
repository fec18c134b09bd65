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


register_problem(
    DuplicateUpload,
    code="duplicate-upload",
    status=409,
    extensions=lambda error: {"existing": {"uid": error.existing.uid, "name": str(error.existing)}},
)
register_problem(ModelRefused, code="model-refused")
register_problem(HubImportRefused, code="hub-refused")
register_problem(EgressRefused, code="address-refused")
register_problem(HubUnreachable, code="hub-unreachable", status=502)
register_problem(SizingRefused, code="sizing-refused")
register_problem(RegistrationRefused, code="registration-refused")
register_problem(ChangeRefused, code="change-refused", status=409)
register_problem(GateOverrideRefused, code="acceptance-refused", status=409)


register_problem(
    StorageQuotaExceeded,
    code="storage-quota-exceeded",
    status=409,
    extensions=lambda error: {
        "used": error.use.used,
        "limit": error.use.limit,
        "wanted": error.requested,
    },
)
register_problem(
    DeletionRefused,
    code="deletion-refused",
    status=409,
    extensions=lambda error: {"reasons": list(error.reasons)},
)
register_problem(ArtifactFileMissing, code="not-found", status=404)
