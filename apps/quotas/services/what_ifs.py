"""Questions about other futures: asked by people, answered by a loop. Nothing that they are about is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from apps.accounts import selectors as accounts
from apps.accounts.models import User
from apps.quotas.models import Claim, Queue, WhatIf
from controlplane.domain.claims import ClaimState
from controlplane.domain.permissions import Permission
from controlplane.domain.scheduling.questions import WhatIfState, changes_as_json
from controlplane.domain.scheduling.what_if import Change
from controlplane.outbox.messages import publish

#: Questions of one person that may wait for their answers.
MOST_OPEN = 3
#: How long questions and answers are kept.
KEPT = timedelta(days=30)


class QuestionRefused(ValueError):
    """It cannot be asked; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and about what."""

    changes: Sequence[Change]
    queue: Queue
    #: The claim whose start is asked for; None: only who starts earlier and later.
    claim: Claim | None = None


@transaction.atomic
def what_if_ask(*, question: Question, actor: User) -> WhatIf:
    """Keep the question; a loop answers it soon.

    :raises PermissionRefused: if the claim is of none of their teams; about no claim only administrators of the
        company may ask.
    :raises QuestionRefused: if it changes nothing, is about a claim that does not wait, or they have asked too
        much.
    """
    claim = question.claim
    if claim is None:
        accounts.require(actor, Permission.VIEW, team=None)
    else:
        accounts.require(actor, Permission.VIEW, team=claim.team)
        if claim.state != ClaimState.PENDING:
            raise QuestionRefused("it does not wait any more, so nothing can make it start earlier")
    if not question.changes:
        raise QuestionRefused("nothing would be different; say at least one thing that would be")
    # Locked, so that two requests at once count each other.
    asking = User.objects.select_for_update(no_key=True).get(pk=actor.pk)
    open_ones = WhatIf.objects.filter(person=asking, state=WhatIfState.ASKED).count()
    if open_ones >= MOST_OPEN:
        raise QuestionRefused(
            f"{open_ones} of your questions are not answered yet; ask again when they are"
        )
    asked = WhatIf.objects.create(
        person=asking,
        team=claim.team if claim else None,
        claim=claim,
        queue=question.queue,
        changes=changes_as_json(question.changes),
    )
    publish("what_if.asked", what_if_uid=asked.uid)
    return asked


def what_if_answer(*, uid: str, answer: Mapping[str, Any], at: datetime) -> bool:
    """Keep the answer; False if it has one already."""
    return _close(uid, state=WhatIfState.ANSWERED, answer=dict(answer), answered_at=at)


def what_if_refuse(*, uid: str, why: str, at: datetime) -> bool:
    """Say why there is no answer; False if there is one already."""
    return _close(uid, state=WhatIfState.REFUSED, refusal=why, answered_at=at)


def what_ifs_prune(*, at: datetime) -> int:
    """Forget questions that were asked long ago; says how many."""
    return WhatIf.objects.filter(created_at__lt=at - KEPT).delete()[0]


def _close(uid: str, **how: Any) -> bool:
    open_one = WhatIf.objects.filter(uid=uid, state=WhatIfState.ASKED)
    return bool(open_one.update(**how))
