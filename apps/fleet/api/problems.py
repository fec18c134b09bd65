"""How refusals of clusters look to a client."""

from __future__ import annotations

from apps.fleet.services.clusters import (
    ClusterMarked,
    ClusterOccupied,
    ClusterRefused,
    ClusterUnfit,
)
from controlplane.web.problems import Problem, translates


@translates(ClusterRefused)
def _refused(error: ClusterRefused) -> Problem:
    errors = [{"field": error.field, "message": str(error)}]
    return Problem(status=422, code="cluster-refused", detail=str(error), errors=errors)


@translates(ClusterUnfit)
def _unfit(error: ClusterUnfit) -> Problem:
    errors = [
        {"field": f"checks.{check.name}", "message": f"{check.message} {check.remedy}".strip()}
        for check in error.failed
    ]
    return Problem(status=422, code="cluster-unfit", detail=str(error), errors=errors)


@translates(ClusterOccupied)
def _occupied(error: ClusterOccupied) -> Problem:
    return Problem(
        status=409,
        code="cluster-occupied",
        detail=str(error),
        extensions={"occupants": list(error.occupants)},
    )


@translates(ClusterMarked)
def _marked(error: ClusterMarked) -> Problem:
    return Problem(
        status=409,
        code="cluster-marked",
        detail=str(error),
        extensions={"nodes": list(error.nodes)},
    )
