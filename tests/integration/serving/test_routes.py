"""Routes with weighted backends of several deployments."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pytest

from apps.accounts.models import AuditEntry
from apps.console.selectors.registered_models import deployments_by_version
from apps.jobs.services import SpecRefused
from apps.serving import selectors
from apps.serving.models import Backend, Deployment, Route, RouteBackend
from apps.serving.selectors.deployments import revision_rows
from apps.serving.services import deployments as services
from apps.serving.services import gateways, routes
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.serving.lifecycle import DeploymentState, ReplicaState
from gateway.load_balancing import LoadBalancer
from gateway.snapshots import snapshot_signature, verify_and_parse_snapshot
from tests.integration.company import Company
from tests.integration.serving.deployments import (
    configuration,
    create,
    ready_deployment,
    replicas_of,
    start_replicas,
)
from tests.integration.threads import at_once, raised


def newest(deployment: Deployment) -> Backend:
    return selectors.newest_revision(deployment).backends.get()


def weights_of(route: Route) -> dict[str, int]:
    """Weight by deployment and revision: ``{"parser r1": 90}``."""
    rows = route.weights.select_related("backend__revision__deployment").order_by("backend")
    return {str(row.backend.revision): row.weight for row in rows}


def set_weights(company: Company, route: Route, **weights: int) -> None:
    """By names of deployments, in their newest revisions."""
    routes.route_weights_set(
        route=route,
        weights={
            newest(Deployment.objects.get(name=name)): weight for name, weight in weights.items()
        },
        actor=company.engineer,
    )


def revise(company: Company, deployment: Deployment) -> None:
    """Add a revision with the same configuration."""
    services.deployment_revise(
        deployment=deployment,
        configuration=configuration(company),
        actor=company.engineer,
        at=company.at,
    )


def stop(company: Company, deployment: Deployment) -> None:
    services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
    for _ in range(3):
        company.turn_deployments()
    deployment.refresh_from_db()
    assert deployment.state == DeploymentState.STOPPED


def shared(company: Company) -> tuple[Deployment, Deployment]:
    """``parser`` and ``candidate`` serve; the route of the first gives the second a tenth."""
    parser = create(company)
    candidate = create(company, name="candidate")
    start_replicas(company)
    set_weights(company, parser.route, parser=90, candidate=10)
    return parser, candidate


def test_the_reconciler_leaves_weights_of_other_deployments(company: Company) -> None:
    parser, candidate = shared(company)

    for _ in range(3):
        company.turn_deployments()

    assert weights_of(parser.route) == {"parser r1": 90, "candidate r1": 10}
    assert weights_of(candidate.route) == {"candidate r1": 100}


def test_a_new_revision_takes_over_the_weight_of_its_deployment_in_every_route(
    company: Company,
) -> None:
    parser, candidate = shared(company)
    # There are two cards; the new revision needs one.
    stop(company, parser)
    revise(company, candidate)
    company.turn_deployments()
    assert weights_of(parser.route) == {"parser r1": 90, "candidate r1": 10}

    start_replicas(company)

    assert weights_of(parser.route) == {"parser r1": 90, "candidate r2": 10}
    assert weights_of(candidate.route) == {"candidate r2": 100}


def test_a_revision_with_weight_in_another_route_only_serves_until_the_next_is_ready(
    company: Company,
) -> None:
    parser = ready_deployment(company)
    candidate = create(company, name="candidate")
    set_weights(company, parser.route, parser=0, candidate=1)
    set_weights(company, candidate.route, candidate=0, parser=1)

    assert selectors.weighted_backend_ids(parser) == {newest(parser).pk}
    assert [row.serves for row in revision_rows(parser)] == [True]
    revise(company, parser)
    company.turn_deployments()

    (old, *_) = replicas_of(parser)
    assert old.state == ReplicaState.READY


def test_the_gateway_divides_requests_among_deployments_by_weight(company: Company) -> None:
    shared(company)
    body = gateways.gateway_snapshot_body(gateways.gateway_snapshot_publish(at=company.at))
    snapshot = verify_and_parse_snapshot(
        body, signature=snapshot_signature(body, token="t"), token="t"
    )
    targets = LoadBalancer(monotonic=lambda: 0.0, random=Random(7))
    line = targets.compile(snapshot).entries["parser"]

    drawn = [choice for _ in range(5_000) if (choice := targets.choose(line)) is not None]

    # Each engine is asked by the name under which it was started.
    counts = Counter(choice.backend.model for choice in drawn)
    assert counts.total() == 5_000
    assert set(counts) == {"parser", "candidate"}
    # Five standard deviations of 500.
    assert 394 < counts["candidate"] < 606


def test_a_stopped_backend_keeps_its_weight_and_gets_no_requests(company: Company) -> None:
    parser, candidate = shared(company)
    stop(company, candidate)

    content = gateways.gateway_snapshot_publish(at=company.at)
    (route,) = (
        one
        for one in json.loads(gateways.gateway_snapshot_body(content))["routes"]
        if one["name"] == "parser"
    )
    endpoints = {one["model"]: len(one["endpoints"]) for one in route["backends"]}
    assert endpoints == {"parser": 1, "candidate": 0}
    assert weights_of(parser.route) == {"parser r1": 90, "candidate r1": 10}

    services.deployment_start(deployment=candidate, actor=company.engineer, at=company.at)
    start_replicas(company)
    assert weights_of(parser.route) == {"parser r1": 90, "candidate r1": 10}


def test_a_deployment_is_not_deleted_while_a_route_shares_backends_with_another(
    company: Company,
) -> None:
    parser, candidate = shared(company)
    stop(company, candidate)
    stop(company, parser)

    with pytest.raises(IllegalTransition, match="while it is a backend of the route parser"):
        services.deployment_delete(deployment=candidate, actor=company.engineer, at=company.at)
    with pytest.raises(IllegalTransition, match="while its route has the backend candidate"):
        services.deployment_delete(deployment=parser, actor=company.engineer, at=company.at)

    routes.route_weights_set(
        route=parser.route,
        weights={newest(parser): 100},
        remove=[candidate],
        actor=company.engineer,
    )
    services.deployment_delete(deployment=candidate, actor=company.engineer, at=company.at)
    assert weights_of(parser.route) == {"parser r1": 100}
    services.deployment_delete(deployment=parser, actor=company.engineer, at=company.at)
    assert not RouteBackend.objects.exists()


def test_every_invalid_weight_is_reported(company: Company) -> None:
    parser, candidate = shared(company)
    team_of_stranger = company.stranger.memberships.get().team
    theirs = create(company, name="theirs")
    theirs.team = team_of_stranger
    theirs.save(update_fields=["team"])
    old = newest(candidate)
    unserved = create(company, name="unserved")
    for deployment in (candidate, unserved):
        revise(company, deployment)
    never = unserved.revisions.get(number=1).backends.get()
    services.traffic_shift(deployment=unserved, backend=newest(unserved))
    own = newest(parser)
    cases: list[tuple[dict[Backend, int], list[Deployment], str]] = [
        ({own: 100}, [], "candidate is a backend of route parser and is missing"),
        ({old: 1}, [], "parser is a backend of route parser and is missing"),
        ({old: 1}, [parser], "route parser belongs to deployment parser; set its weight to 0"),
        ({own: 0, old: 0}, [], "the weights of route parser are all 0"),
        ({own: -1, old: 2}, [], "the weight of parser is -1"),
        ({own: 1_000_001, old: 2}, [], "the weight of parser is 1000001"),
        ({own: True, old: 2}, [], "the weight of parser is True"),
        ({own: 1, old: 1, newest(candidate): 1}, [], "candidate has 2 backends"),
        ({own: 1, old: 1, newest(theirs): 1}, [], "theirs belongs to team"),
        ({own: 1, old: 1, never: 1}, [], "revision 1 of deployment unserved is no longer served"),
        ({own: 1, old: 1}, [candidate], "candidate has a weight and is removed"),
    ]
    for weights, remove, message in cases:
        with pytest.raises(SpecRefused, match=message):
            routes.route_weights_set(
                route=parser.route, weights=weights, remove=remove, actor=company.engineer
            )
    assert weights_of(parser.route) == {"parser r1": 90, "candidate r1": 10}


def test_weights_are_recorded_in_the_audit_trail_once(company: Company) -> None:
    parser, _ = shared(company)
    set_weights(company, parser.route, parser=90, candidate=10)

    (entry,) = AuditEntry.objects.filter(action="route_weights.set")
    assert (entry.object_uid, entry.object_name) == (parser.route.uid, "parser")
    assert entry.detail["weights"] == "parser 90, candidate 10"


def test_a_model_version_is_served_by_its_own_deployment_only(company: Company) -> None:
    _, candidate = shared(company)
    version = newest(candidate).revision.model_version

    found = deployments_by_version([version.pk], user=company.engineer)

    assert [one.name for one in found[version.pk]] == ["candidate", "parser"]


def test_weights_set_while_reconcilers_run_are_those_of_one_writer(
    committed_company: Company,
) -> None:
    company = committed_company
    parser, candidate = shared(company)
    for deployment in (parser, candidate):
        revise(company, deployment)

    def move(deployment: Deployment) -> None:
        services.traffic_shift(deployment=deployment, backend=newest(deployment))

    def set_to(own: int, other: int) -> None:
        set_weights(company, parser.route, parser=own, candidate=other)

    for _ in range(5):
        outcomes = at_once(
            lambda: move(parser),
            lambda: move(candidate),
            lambda: set_to(70, 30),
            lambda: set_to(20, 80),
        )
        assert raised(outcomes, Exception) == 0
        settled = weights_of(parser.route)
        assert settled in (
            {"parser r2": 70, "candidate r2": 30},
            {"parser r2": 20, "candidate r2": 80},
        )
        move(parser)
        move(candidate)
        assert weights_of(parser.route) == settled
    assert weights_of(candidate.route) == {"candidate r2": 100}


def test_a_backend_is_not_added_while_its_deployment_is_deleted(
    committed_company: Company,
) -> None:
    company = committed_company
    parser = create(company)
    candidate = create(company, name="candidate")
    stop(company, candidate)
    backend = newest(candidate)

    def add() -> None:
        routes.route_weights_set(
            route=parser.route,
            weights={newest(parser): 90, backend: 10},
            actor=company.engineer,
        )

    def delete() -> None:
        services.deployment_delete(deployment=candidate, actor=company.engineer, at=company.at)

    outcomes = at_once(add, delete)

    assert sum(isinstance(one, Exception) for one in outcomes) == 1
    candidate.refresh_from_db()
    assert ("candidate r1" in weights_of(parser.route)) is (candidate.deleted_at is None)
