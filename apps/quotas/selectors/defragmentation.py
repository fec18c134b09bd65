"""Defragmentation plans: permissions, and whether a plan is still valid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet

from apps.accounts import selectors as accounts
from apps.accounts.models import Team, User
from apps.fleet.models import Node
from apps.quotas.models import Claim, Defragmentation, DefragmentationMove
from apps.quotas.selectors.claim_snapshots import ALLOCATED_STATES
from apps.quotas.selectors.snapshots import scheduling_snapshot
from controlplane.domain.common.permissions import Permission, roles_grant
from controlplane.domain.scheduling.defragmentation_runs import RelocationState, relocation_blockers
from controlplane.domain.scheduling.relocation import Relocation
from controlplane.domain.scheduling.snapshots import ReplicaPlacement, SchedulingSnapshot


def defragmentations_visible(user: accounts.RequestUser) -> QuerySet[Defragmentation]:
    """Plans that relocate or free cards for workloads of the user's teams, or that the user proposed."""
    rows = Defragmentation.objects.select_related("claim__team")
    if accounts.is_company_administrator(user):
        return rows
    teams = accounts.teams_visible(user)
    moved = DefragmentationMove.objects.filter(claim__team__in=teams).values("defragmentation")
    seen = Q(pk__in=moved) | Q(claim__team__in=teams)
    if isinstance(user, User) and user.confined_to is None:
        seen |= Q(proposed_by=user)
    return rows.filter(seen)


def relocations_of(plan: Defragmentation) -> QuerySet[DefragmentationMove]:
    """Relocations of the plan in order of execution."""
    return plan.moves.select_related("claim__team", "claim__queue", "successor").order_by("number")


def relocated_teams(plan: Defragmentation) -> Sequence[Team]:
    """Teams whose workloads are relocated, by name."""
    return list(
        Team.objects.filter(claims__moves__defragmentation=plan).distinct().order_by("name")
    )


def can_propose_defragmentation(user: accounts.RequestUser) -> bool:
    """Whether the user manages queues of any team or operates the fleet."""
    if accounts.has_company_permission(user, Permission.OPERATE_FLEET):
        return True
    return accounts.teams_with_permission(user, Permission.MANAGE_QUEUES).exists()


def require_permission_to_propose(user: accounts.RequestUser) -> None:
    """:raises PermissionRefused: if the user may not propose plans."""
    if not can_propose_defragmentation(user):
        raise accounts.PermissionRefused(
            "permission.defragmentation.propose",
            "defragmentation plans can be proposed by queue admins of a team and "
            "operators of the company; you have neither role. An administrator can "
            "change that.",
        )


def can_relocate(user: accounts.RequestUser, teams: Iterable[Team]) -> bool:
    """Whether the user manages queues of each of those teams or operates the fleet."""
    return not _teams_without_relocation_permission(user, teams)


def require_permission_to_relocate(user: accounts.RequestUser, teams: Iterable[Team]) -> None:
    """:raises PermissionRefused: naming the teams for which the user has no permission."""
    if missing := _teams_without_relocation_permission(user, teams):
        raise accounts.PermissionRefused(
            "permission.defragmentation.approve",
            "this plan relocates workloads of {teams}, where you neither manage "
            "queues nor operate the fleet; an administrator of the company can "
            "approve it",
            teams=", ".join(team.name for team in missing),
        )


def _teams_without_relocation_permission(
    user: accounts.RequestUser, teams: Iterable[Team]
) -> list[Team]:
    if accounts.has_company_permission(user, Permission.OPERATE_FLEET):
        return []
    roles = accounts.roles_by_team(user)
    return [
        team
        for team in teams
        if not roles_grant(roles.get(team.pk, frozenset()), Permission.MANAGE_QUEUES)
    ]


def defragmentation_snapshot() -> SchedulingSnapshot:
    """The scheduler's snapshot, in which only claims with a workload uid are preemptible.

    A relocation finds the claim that resumes a workload by that uid.
    """
    nameless = frozenset(
        Claim.objects.filter(state__in=ALLOCATED_STATES, work_uid="").values_list("uid", flat=True)
    )
    seen = scheduling_snapshot()
    if not nameless:
        return seen
    running = (
        replace(one, preemptible=False) if one.uid in nameless else one for one in seen.running
    )
    return replace(seen, running=tuple(running))


def plan_blockers_since_proposal(plan: Defragmentation) -> tuple[str, ...]:
    """Reasons why the remaining relocations are no longer possible; empty if they are."""
    remaining = [row for row in relocations_of(plan) if row.state == RelocationState.PLANNED]
    # As the snapshot names the beneficiaries of nominations.
    nominees = [f"work:{uid}" for uid in (plan.uid, *(row.claim.work_uid for row in remaining))]
    seen = defragmentation_snapshot()
    beneficiary = plan.claim.uid if plan.claim else ""
    if beneficiary and beneficiary not in {claim.uid for claim in seen.claims}:
        return ("the claim that it makes room for does not wait any more",)
    return relocation_blockers(
        [(row.number, planned_move(row)) for row in remaining],
        plan.room,
        seen,
        nominees=[*nominees, beneficiary] if beneficiary else nominees,
    )


def planned_move(row: DefragmentationMove) -> Relocation:
    """The relocation as the scheduler planned it."""
    return Relocation(
        claim=row.claim.uid,
        chip=row.chip,
        source=replica_placements_from_json(row.source),
        target=replica_placements_from_json(row.target),
        lost=timedelta(seconds=row.lost),
        cost=row.cost,
    )


def node_names(uids: Iterable[str]) -> Mapping[str, str]:
    """Names of those nodes that still exist, by uid."""
    return dict(Node.objects.filter(uid__in=set(uids)).values_list("uid", "name"))


def replica_placements_from_json(
    places: Iterable[Mapping[str, Any]],
) -> tuple[ReplicaPlacement, ...]:
    """The replicas that a relocation stores as JSON."""
    return tuple(ReplicaPlacement(**{**place, "cards": tuple(place["cards"])}) for place in places)
