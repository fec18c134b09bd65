"""How refusals of datasets and models look to a client."""

from __future__ import annotations

from apps.models.selectors import NoSuchFile
from apps.models.services.artifacts import RegistrationRefused
from apps.models.services.datasets import DuplicateUpload
from apps.models.services.storage import DeletionRefused
from controlplane.domain.datasets import DatasetRefused
from controlplane.domain.models import ModelRefused
from controlplane.domain.storage import StorageQuotaExceeded
from controlplane.web.problems import Problem, translates


@translates(DatasetRefused)
def _dataset(error: DatasetRefused) -> Problem:
    return Problem(
        status=422,
        code="dataset-refused",
        detail=str(error),
        errors=[
            {"row": problem.row, "field": problem.column, "message": problem.message}
            for problem in error.problems
        ],
        extensions={"total": error.total},
    )


@translates(DuplicateUpload)
def _duplicate(error: DuplicateUpload) -> Problem:
    existing = {"uid": error.existing.uid, "name": str(error.existing)}
    return Problem(
        status=409,
        code="duplicate-upload",
        detail=str(error),
        extensions={"existing": existing},
    )


@translates(ModelRefused)
def _model(error: ModelRefused) -> Problem:
    return Problem(status=422, code="model-refused", detail=str(error))


@translates(RegistrationRefused)
def _registration(error: RegistrationRefused) -> Problem:
    return Problem(status=422, code="registration-refused", detail=str(error))


@translates(StorageQuotaExceeded)
def _storage_quota(error: StorageQuotaExceeded) -> Problem:
    figures = {"used": error.use.used, "limit": error.use.limit, "wanted": error.wanted}
    return Problem(status=409, code="storage-quota-exceeded", detail=str(error), extensions=figures)


@translates(DeletionRefused)
def _deletion(error: DeletionRefused) -> Problem:
    return Problem(
        status=409,
        code="deletion-refused",
        detail=str(error),
        extensions={"reasons": list(error.reasons)},
    )


@translates(NoSuchFile)
def _no_such_file(error: NoSuchFile) -> Problem:
    return Problem(status=404, code="not-found", detail=str(error))
