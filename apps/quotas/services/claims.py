"""Claims are asked for, told why they wait, revoked and released."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from apps.accounts.models import Team, User
from apps.quotas.models import Allocation, Claim, ClaimTransition, Nomination, Queue
from apps.quotas.selectors.intakes import intake_refusal_of_any
from apps.quotas.services.nominations import nominations_made, nominations_taken_up
from apps.quotas.services.trees import queue_pin
from apps.quotas.services.usage import usage_close_each
from controlplane.domain.claims import (
    CLAIM,
    UNTOLD,
    ClaimEvent,
    ClaimState,
    GangShape,
    ReleaseReason,
)
from controlplane.domain.scheduling.plans import Refusal
from controlplane.outbox.messages import publish, publish_each
from controlplane.persistence.moves import Step, move, move_each
from controlplane.persistence.pipelines import pipelined
from controlplane.persistence.updates import insert_each

#: Columns of a claim that hold more than a word or a number.
_DOCUMENTS = (
    "shape",
    "chips",
    "speeds",
    "where",
    "placement",
    "explanation",
    "explanation_numbers",
)


class QueueTakesNothing(Exception):
    """The queue takes no new claims; says why, and what to do."""


class PendingLimitExceeded(Exception):
    """A user has too many pending claims; says who, how many, the limit, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What people know a claim as: claims come and go, the work stays."""

    #: ``job`` or ``deployment``.
    kind: str
    uid: str
    name: str
    #: Who asked for it.
    person: User | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a claim asks beyond cards, and what may be done with it."""

    #: Its owner can save, stop and go on later.
    preemptible: bool = False
    #: How long it is expected to run on the first chip.
    runtime: timedelta | None = None
    #: How fast it runs on each chip against the first; absent means 1.
    speeds: Mapping[str, float] = field(default_factory=dict)
    #: Labels that its nodes bear.
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: frozenset[str] = frozenset()
    #: Level of the network under one domain of which all of it must be, and the same as a wish.
    within: str = ""
    near: str = ""
    #: Number of the first chips that are equally good.
    equal_chips: int = 1
    #: Since when it is in line, if it takes up work that was revoked.
    in_line_since: datetime | None = None
    #: It is for work that the queue took before: one that takes nothing new takes it all the same.
    continues: bool = False

    def where_json(self) -> dict[str, Any]:
        """What is asked of nodes, without what is not."""
        asked = {
            "selector": dict(self.selector),
            "tolerations": sorted(self.tolerations),
            "within": self.within,
            "near": self.near,
            "equal_chips": self.equal_chips if self.equal_chips > 1 else 0,
        }
        return {key: value for key, value in asked.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What an owner asks for."""

    #: Kind and uid.
    owner: tuple[str, str]
    team: Team
    queue: Queue
    shape: GangShape
    chips: Sequence[str]
    priority: int = 0
    work: Work | None = None
    terms: Terms = field(default_factory=Terms)

    def claim(self) -> Claim:
        """The row, not saved yet.

        :raises ValueError: if it accepts no chip; it would wait for ever.
        """
        if not self.chips:
            raise ValueError("a claim must accept at least one chip, got none")
        work, terms = self.work, self.terms
        kind, uid = self.owner
        return Claim(
            owner_kind=kind,
            owner_uid=uid,
            team=self.team,
            queue=self.queue,
            shape=self.shape.as_json(),
            card_count=self.shape.cards,
            chips=list(self.chips),
            priority=self.priority,
            work_kind=work.kind if work else "",
            work_uid=work.uid if work else "",
            work_name=work.name if work else "",
            person=work.person if work else None,
            speeds=dict(terms.speeds),
            where=terms.where_json(),
            runtime=None if terms.runtime is None else round(terms.runtime.total_seconds()),
            preemptible=terms.preemptible,
            in_line_since=terms.in_line_since,
            explanation=UNTOLD,
        )


def claim_request(
    *,
    owner: tuple[str, str],
    team: Team,
    queue: Queue,
    shape: GangShape,
    chips: Sequence[str],
    priority: int = 0,
    work: Work | None = None,
    terms: Terms | None = None,
) -> Claim:
    """A new pending claim of ``owner`` (kind, uid).

    :raises ValueError: if it accepts no chip; it would wait for ever.
    :raises QueueTakesNothing: if the queue, or one above it, takes no new claims.
    :raises PendingLimitExceeded: if its user would have too many pending claims.
    """
    request = Request(
        owner=owner,
        team=team,
        queue=queue,
        shape=shape,
        chips=chips,
        priority=priority,
        work=work,
        terms=terms or Terms(),
    )
    return claims_request(requests=(request,))[0]


@transaction.atomic
def claims_request(*, requests: Sequence[Request]) -> list[Claim]:
    """``claim_request`` for many: a new pending claim for each of them, or none at all.

    :raises ValueError: if one accepts no chip; it would wait for ever.
    :raises QueueTakesNothing: if one of the queues, or one above it, takes no new claims.
    :raises PendingLimitExceeded: if a user would have too many pending claims.
    """
    _check_pending(requests)
    claims = [request.claim() for request in requests]
    insert_each(claims, numbered=True)
    # Asked under the locks: the queues are not changed until the claims are committed.
    queues = {each.queue.pk: each.queue for each in requests}
    queue_pin(*queues.values())
    fresh = {each.queue.pk: each.queue for each in requests if not each.terms.continues}
    if fresh and (refusal := intake_refusal_of_any(fresh.values())):
        raise QueueTakesNothing(refusal)
    nominations_taken_up(claims=claims)
    # Once for all of them: the scheduler looks at everything that waits.
    if claims:
        publish("claim.requested", claim_uid=claims[0].uid)
    return claims


def pending_check(*, user: User, more: int) -> None:
    """Whether the user may submit so many more claims. Holds other submissions of the user until the commit.

    :raises PendingLimitExceeded: if that would be too many.
    """
    limit = settings.NINEFOLD_PENDING_PER_USER
    if not limit:
        return
    # Two submissions at once would each count without the other.
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    pending = Claim.objects.filter(person=user, state=ClaimState.PENDING).count()
    if pending + more > limit:
        raise PendingLimitExceeded(
            f"user {user.username} has {pending} pending claims and submits {more} more; the limit is {limit} for "
            f"each user; wait until some have started, or cancel some"
        )


def _check_pending(requests: Sequence[Request]) -> None:
    """For what is submitted now; what goes on after an eviction or a failure was submitted before."""
    users: dict[int, User] = {}
    more: Counter[int] = Counter()
    for each in requests:
        user = each.work.person if each.work else None
        if user is not None and not each.terms.continues and each.terms.in_line_since is None:
            users[user.pk] = user
            more[user.pk] += 1
    for key in sorted(users):
        pending_check(user=users[key], more=more[key])


def claims_refused(*, refusals: Sequence[Refusal]) -> None:
    """Keep the reason with each claim that still waits, where it changed; one statement for all of them."""
    if not refusals:
        return
    with connection.cursor() as cursor:
        # A claim that was admitted meanwhile keeps the reason of its admission: its state is asked under its lock.
        cursor.execute(
            """
            UPDATE quotas_claim AS claim
               SET explanation = told.reason, explanation_numbers = told.numbers
              FROM json_to_recordset(%(told)s::json) AS told(uid text, reason text, numbers jsonb)
             WHERE claim.uid = told.uid AND claim.state = %(waiting)s AND claim.explanation <> told.reason
            """,
            {
                # One document is written much faster than lists of texts are.
                "told": json.dumps(
                    [
                        {"uid": each.claim, "reason": each.reason, "numbers": dict(each.numbers)}
                        for each in refusals
                    ]
                ),
                "waiting": ClaimState.PENDING.value,
            },
        )


@transaction.atomic
def claim_revoke(
    *,
    claim: Claim,
    reason: ReleaseReason,
    grace: timedelta,
    at: datetime,
    why: str,
    for_claim: Claim | None = None,
) -> None:
    """Ask the owner to save and stop. The cards stay held until it has released.

    :param for_claim: a waiting claim for which its cards are kept then.
    :raises IllegalTransition: if the claim holds nothing.
    """
    move(
        claim,
        CLAIM,
        ClaimEvent.REVOKE,
        into=ClaimTransition,
        at=at,
        reason=why,
        release_reason=reason,
        revoke_by=at + grace,
        revoked_for=for_claim,
    )
    publish("claim.revoking", claim_uid=claim.uid)


def claim_release(*, uid: str, reason: ReleaseReason, at: datetime) -> bool:
    """Free the cards. Only the owner calls it, and only when nothing of it runs any more.

    Says whether this call released it: False if it was released before, or never existed.
    """
    return uid in claims_release(uids=(uid,), reason=reason, at=at)


@transaction.atomic
def claims_release(*, uids: Sequence[str], reason: ReleaseReason, at: datetime) -> frozenset[str]:
    """``claim_release`` for many; the uids of those that this call released."""
    rows = Claim.objects.select_for_update(no_key=True, of=("self",)).select_related("revoked_for")
    # What was asked for, and where it runs, are documents that nobody needs now.
    rows = rows.defer(*_DOCUMENTS, *(f"revoked_for__{name}" for name in _DOCUMENTS))
    claims = list(rows.filter(uid__in=uids).exclude(state=ClaimState.RELEASED).order_by("uid"))
    with pipelined():
        ends = usage_close_each(claims=claims, at=at)
        nominations_made(released=claims, at=at)
        for ended in set(ends.values()):
            those = [pk for pk, end in ends.items() if end == ended]
            Allocation.objects.filter(claim__in=those, released_at=None).update(released_at=ended)
        steps = []
        for claim in claims:
            # A revocation's own reason outlives the owner's: it was preempted, even if it then "finished".
            kept = ReleaseReason(claim.release_reason) if claim.release_reason else reason
            changes = {
                "release_reason": kept,
                "released_at": ends[claim.pk],
                "metered_until": claim.metered_until,
            }
            steps.append(Step(row=claim, reason=kept, changes=changes))
        move_each(steps, CLAIM, ClaimEvent.RELEASE, into=ClaimTransition, at=at, locked=True)
        Nomination.objects.filter(claim__in=ends).delete()
        # Once for all of them: the scheduler looks at everything that is free.
        publish_each("claim.released", ({"claim_uid": claim.uid} for claim in claims[:1]))
    return frozenset(claim.uid for claim in claims)


def claim_progress(*, uid: str, progress: float, checkpointed_at: datetime | None = None) -> None:
    """The owner tells how far it is (0 to 1) and when it last saved."""
    changes: dict[str, object] = {"progress": progress}
    if checkpointed_at is not None:
        changes["checkpointed_at"] = checkpointed_at
    Claim.objects.filter(uid=uid).update(**changes)
