"""Questions about rearrangements: who may see and make them, and whether they still can be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet

from apps.accounts import selectors as accounts
from apps.accounts.models import Team, User
from apps.fleet.models import Node
from apps.quotas.models import Claim, Rearrangement, RearrangementMove
from apps.quotas.selectors.snapshots import HOLDING, snapshot
from controlplane.domain.permissions import Permission, allows
from controlplane.domain.rearrangements import MoveState, what_changed
from controlplane.domain.scheduling.moves import Move
from controlplane.domain.scheduling.plans import ReplicaPlacement
from controlplane.domain.scheduling.snapshots import Snapshot


def rearrangements_visible(user: accounts.Person) -> QuerySet[Rearrangement]:
    """Those that move work of their teams, make room for it, or were proposed by them."""
    rows = Rearrangement.objects.select_related("claim__team")
    if accounts.is_company_administrator(user):
        return rows
    teams = accounts.teams_of(user)
    moved = RearrangementMove.objects.filter(claim__team__in=teams).values("rearrangement")
    seen = Q(pk__in=moved) | Q(claim__team__in=teams)
    if isinstance(user, User) and user.confined_to is None:
        seen |= Q(proposed_by=user)
    return rows.filter(seen)


def moves_of(rearrangement: Rearrangement) -> QuerySet[RearrangementMove]:
    """In the order in which they have to be made."""
    return rearrangement.moves.select_related("claim__team", "claim__queue", "successor").order_by(
        "number"
    )


def teams_moved(rearrangement: Rearrangement) -> Sequence[Team]:
    """Whose work is moved, by name."""
    return list(
        Team.objects.filter(claims__moves__rearrangement=rearrangement).distinct().order_by("name")
    )


def may_propose(user: accounts.Person) -> bool:
    """Whether they manage queues of any team or operate the fleet."""
    if accounts.company_allows(user, Permission.OPERATE_FLEET):
        return True
    return accounts.teams_where(user, Permission.MANAGE_QUEUES).exists()


def require_proposing(user: accounts.Person) -> None:
    """:raises PermissionRefused: if they may not."""
    if not may_propose(user):
        raise accounts.PermissionRefused(
            "moves are proposed by queue admins of a team and operators of the company; you are neither. "
            "An administrator can change that."
        )


def may_move(user: accounts.Person, teams: Iterable[Team]) -> bool:
    """Whether they manage queues of each of those teams or operate the fleet."""
    return not _not_theirs(user, teams)


def require_moving(user: accounts.Person, teams: Iterable[Team]) -> None:
    """:raises PermissionRefused: naming the teams whose work is not theirs to move."""
    if missing := _not_theirs(user, teams):
        raise accounts.PermissionRefused(
            f"this moves work of {', '.join(team.name for team in missing)}, where you neither manage "
            "queues nor operate the fleet; an administrator of the company can approve it"
        )


def _not_theirs(user: accounts.Person, teams: Iterable[Team]) -> list[Team]:
    if accounts.company_allows(user, Permission.OPERATE_FLEET):
        return []
    held = accounts.roles_by_team(user)
    return [
        team
        for team in teams
        if not allows(held.get(team.pk, frozenset()), Permission.MANAGE_QUEUES)
    ]


def snapshot_to_rearrange() -> Snapshot:
    """The scheduler's snapshot, in which only work stands as movable that can be found again afterwards."""
    nameless = frozenset(
        Claim.objects.filter(state__in=HOLDING, work_uid="").values_list("uid", flat=True)
    )
    seen = snapshot()
    if not nameless:
        return seen
    running = (
        replace(one, preemptible=False) if one.uid in nameless else one for one in seen.running
    )
    return replace(seen, running=tuple(running))


def changes_since(rearrangement: Rearrangement) -> tuple[str, ...]:
    """Why what is left of its moves cannot be made any more, in words; nothing if it can."""
    left = [row for row in moves_of(rearrangement) if row.state == MoveState.PLANNED]
    # As the snapshot names whom cards are kept for.
    keepers = [f"work:{uid}" for uid in (rearrangement.uid, *(row.claim.work_uid for row in left))]
    seen = snapshot_to_rearrange()
    beneficiary = rearrangement.claim.uid if rearrangement.claim else ""
    if beneficiary and beneficiary not in {claim.uid for claim in seen.claims}:
        return ("the claim that it makes room for does not wait any more",)
    return what_changed(
        [(row.number, move_of(row)) for row in left],
        rearrangement.room,
        seen,
        keepers=[*keepers, beneficiary] if beneficiary else keepers,
    )


def move_of(row: RearrangementMove) -> Move:
    """As the scheduler planned it."""
    return Move(
        claim=row.claim.uid,
        chip=row.chip,
        source=replicas_of(row.source),
        target=replicas_of(row.target),
        lost=timedelta(seconds=row.lost),
        cost=row.cost,
    )


def node_names(uids: Iterable[str]) -> Mapping[str, str]:
    """Names of those nodes that there still are, by uid."""
    return dict(Node.objects.filter(uid__in=set(uids)).values_list("uid", "name"))


def replicas_of(places: Iterable[Mapping[str, Any]]) -> tuple[ReplicaPlacement, ...]:
    """The replicas, as a move keeps them."""
    return tuple(ReplicaPlacement(**{**place, "cards": tuple(place["cards"])}) for place in places)
