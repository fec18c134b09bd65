"""Weights of routes: which share of a route's requests each of its backends gets.

A route belongs to one deployment and may have backends of other deployments of its team beside it. Creating a
deployment gives its route one backend with all requests; later the shares change here only. The deployment
reconciler (``services.deployments.traffic_shift``) moves the share of a deployment between its revisions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from django.db import transaction
from django.db.models import Max

from apps.accounts.models import User
from apps.accounts.services import record_audit_entry
from apps.jobs.services import SpecRefused
from apps.serving.models import Backend, Deployment, Revision, Route, RouteBackend
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding, field_finding


@transaction.atomic
def route_weights_set(
    *,
    route: Route,
    weights: Mapping[Backend, int],
    actor: User,
    remove: Collection[Deployment] = (),
) -> None:
    """Set the weights of all backends of a route. Writes nothing if they are unchanged.

    :param weights: by backend, 0 to ``MAX_WEIGHT``; relative to their sum. One backend for each deployment,
        of its newest revision or of one that has a weight.
    :param remove: deployments whose backend is removed from the route. A deployment of the route that is in
        neither argument is refused.
    :raises SpecRefused: if the weights are invalid; the route is unchanged then.
    """
    backends = {
        backend.pk: backend
        for backend in Backend.objects.filter(
            pk__in=[backend.pk for backend in weights]
        ).select_related("revision__deployment__team")
    }
    _lock_route(route, backends.values())
    owner = Deployment.objects.select_related("team").get(pk=route.deployment_id)
    current = {
        row.backend: row.weight
        for row in route.weights.select_related("backend__revision__deployment").order_by("id")
    }
    wanted = {backends[backend.pk]: weight for backend, weight in weights.items()}
    findings = [
        *_check_deployments(route, owner, current, wanted, remove),
        *_check_backends(route, owner, wanted),
        *check_route_weights(
            {_backend_name(backend): weight for backend, weight in wanted.items()}, route=route.name
        ),
    ]
    if findings:
        raise SpecRefused(findings)
    if wanted == current:
        return
    route.weights.exclude(backend__in=backends).delete()
    for backend, weight in wanted.items():
        RouteBackend.objects.update_or_create(
            route=route, backend=backend, defaults={"weight": weight}
        )
    record_audit_entry(
        route,
        actor=actor,
        action="route_weights.set",
        team=owner.team,
        weights=", ".join(
            f"{_backend_name(backend)} {weight}" for backend, weight in wanted.items()
        ),
    )


def _lock_route(route: Route, backends: Collection[Backend]) -> None:
    """Lock deployments before routes, each in the order of their keys, as their deletion does.

    :raises SpecRefused: if one of the deployments was deleted.
    """
    keys = {backend.revision.deployment_id for backend in backends} | {route.deployment_id}
    deployments = (
        Deployment.objects.select_for_update(no_key=True).filter(pk__in=keys).order_by("pk")
    )
    deleted = [one.name for one in deployments if one.deletion_requested_at or one.deleted_at]
    if deleted:
        raise SpecRefused(
            [
                field_finding(
                    "weights",
                    "deployment.state.deleted",
                    "deployment {deployment} has been deleted",
                    deployment=name,
                )
                for name in deleted
            ]
        )
    Route.objects.select_for_update(no_key=True).get(pk=route.pk)


def _backend_name(backend: Backend) -> str:
    return backend.revision.deployment.name


def _check_deployments(
    route: Route,
    owner: Deployment,
    current: Collection[Backend],
    wanted: Collection[Backend],
    remove: Collection[Deployment],
) -> Iterator[FieldFinding]:
    """Findings where a deployment of the route is missing, or the route's own deployment is removed."""
    given = {backend.revision.deployment for backend in wanted}
    for deployment in remove:
        if deployment == owner:
            message = Reason(
                "route.deployment.own",
                "route {route} belongs to deployment {deployment}; set its weight to 0 "
                "instead of removing it",
                route=route.name,
                deployment=owner.name,
            )
            yield FieldFinding(field="remove", message=message)
        elif deployment in given:
            message = Reason(
                "route.deployment.weighted_and_removed",
                "deployment {deployment} has a weight and is removed; choose one of the two",
                deployment=deployment.name,
            )
            yield FieldFinding(field="remove", message=message)
    before = {backend.revision.deployment for backend in current} | {owner}
    for deployment in sorted(before - given - set(remove), key=lambda one: one.name):
        message = Reason(
            "route.backend.missing",
            "deployment {deployment} is a backend of route {route} and is missing; "
            "set its weight (0 for no requests) or remove it by name",
            deployment=deployment.name,
            route=route.name,
        )
        yield FieldFinding(field="weights", message=message)


#: The greatest weight of a backend in a route, as of a backend in the Gateway API of Kubernetes.
MAX_WEIGHT = 1_000_000


def check_route_weights(weights: Mapping[str, int], *, route: str) -> Iterator[FieldFinding]:
    """Findings about the weights of a route, given by the names of its deployments."""
    for name, weight in weights.items():
        # bool is a subclass of int.
        if type(weight) is not int or not 0 <= weight <= MAX_WEIGHT:
            message = Reason(
                "route.weight.out_of_range",
                "the weight of {deployment} is {weight}; it must be a whole number from "
                "0 to {limit}",
                deployment=name,
                weight=weight,
                limit=MAX_WEIGHT,
            )
            yield FieldFinding(field="weights", message=message)
    if weights and not any(weights.values()):
        message = Reason(
            "route.weights.all_zero",
            "the weights of route {route} are all 0; at least one must be 1 or more",
            route=route,
        )
        yield FieldFinding(field="weights", message=message)


def _check_backends(
    route: Route, owner: Deployment, wanted: Collection[Backend]
) -> Iterator[FieldFinding]:
    newest = dict(
        Revision.objects.filter(
            failed_at=None, deployment__in=[one.revision.deployment_id for one in wanted]
        )
        .order_by()
        .values_list("deployment")
        .annotate(Max("number"))
    )
    weighted = set(
        RouteBackend.objects.filter(backend__in=wanted).values_list("backend", flat=True)
    )
    for name, count in Counter(map(_backend_name, wanted)).items():
        if count > 1:
            message = Reason(
                "route.backend.duplicate",
                "deployment {deployment} has {count} backends in the weights; a "
                "deployment can have one backend in a route, because its newest revision "
                "receives all of its requests",
                deployment=name,
                count=count,
            )
            yield FieldFinding(field="weights", message=message)
    for backend in wanted:
        revision, deployment = backend.revision, backend.revision.deployment
        if deployment.team_id != owner.team_id:
            message = Reason(
                "route.backend.wrong_team",
                "deployment {deployment} belongs to team {team}; backends of route "
                "{route} must belong to team {owner}",
                deployment=deployment.name,
                team=deployment.team.name,
                route=route.name,
                owner=owner.team.name,
            )
            yield FieldFinding(field="weights", message=message)
        if backend.pk not in weighted and revision.number < newest[deployment.pk]:
            message = Reason(
                "route.backend.revision_outdated",
                "revision {revision} of deployment {deployment} is no longer served; use "
                "revision {newest}",
                revision=revision.number,
                deployment=deployment.name,
                newest=newest[deployment.pk],
            )
            yield FieldFinding(field="weights", message=message)
