"""Jobs that run, get ready or wait for cards."""

from __future__ import annotations

from dataclasses import replace

from apps.jobs import services
from apps.jobs.models import Attempt, AttemptTransition, Job
from apps.quotas.models import Claim
from apps.quotas.reconcilers import cycle_run
from controlplane.domain.jobs.lifecycle import AttemptEvent
from controlplane.domain.scheduling.plans import SchedulingPolicy
from tests.e2e.demo.clock import NOW, ago, before
from tests.e2e.demo.fleet import GPU, NPU, Fleet
from tests.e2e.demo.reasons import sample_reason
from tests.e2e.demo.registry import Registry
from tests.e2e.demo.users import Users
from tests.e2e.demo.work import Work, report, start, submit


def running(work: Work, fleet: Fleet) -> Job:
    """The last of them is the one to look at."""
    kinds = (
        ("long context", GPU, 8, 130, 900),
        ("distil to half the size", NPU, 16, 700, 900),
        ("teach addresses", GPU, 4, 420, 600),
    )
    for number, (name, chip, cards, steps, total) in enumerate(kinds):
        hours = 3.2 - number
        with ago(hours=hours, minutes=12):
            job = submit(
                replace(work, chip=chip, cards=min(cards, 8)),
                name,
                output=f"address-parser-{chip[7:10]}",
            )
        attempt = start(job, at=before(hours=hours), fleet=fleet)
        report(
            attempt, steps=steps, total=total, at=before(seconds=4), floor=0.24, seed=number + 40
        )
    return job


def preparing(work: Work, fleet: Fleet) -> Job:
    with ago(minutes=2):
        job = submit(replace(work, chip=GPU, cards=2), "quick check", output="scratch")
    start(job, at=before(minutes=1), fleet=fleet, until=AttemptEvent.LAUNCH)
    return job


def stopping(work: Work, fleet: Fleet) -> Job:
    with ago(hours=1):
        job = submit(replace(work, chip=NPU, cards=2), "sweep 7 of 20", output="scratch")
    attempt = start(job, at=before(minutes=55), fleet=fleet)
    report(attempt, steps=60, total=600, at=before(minutes=2), floor=0.7, seed=77)
    services.job_cancel(job=job, actor=work.actor, at=before(seconds=20))
    attempt.refresh_from_db()
    services.attempt_transition(
        attempt,
        AttemptEvent.STOP,
        at=before(seconds=15),
        reason=sample_reason(
            "attempt.state.stopping",
            reason=sample_reason("transition.by_user.cancelled", user=work.actor.username),
        ),
        stop_reason="cancelled",
    )
    assert AttemptTransition.objects.filter(entity=attempt).exists()
    job.refresh_from_db()
    return job


def others(work: Work, users: Users, fleet: Fleet, known: Registry) -> None:
    """What another team runs: most of the sample cards."""
    voice = replace(
        work, actor=users.lin, team=users.voice, queue=fleet.default, model=known.other_base
    )
    asked = [
        ("speaker labels", GPU, 8, 9.0),
        ("noise at 0 dB", GPU, 4, 8.0),
        ("dialects", NPU, 8, 5.0),
    ]
    for name, chip, cards, hours in asked:
        with ago(hours=hours):
            job = submit(replace(voice, chip=chip, cards=cards), name, output="scratch")
        attempt = start(job, at=before(hours=hours), fleet=fleet)
        report(attempt, steps=90, total=600, at=before(seconds=9), seed=cards)


def pressure(work: Work, users: Users, fleet: Fleet, known: Registry) -> Job:
    """More is asked for than there is, by three teams; the last is the one to look at."""
    theirs = replace(
        work, actor=users.noor, team=users.search, queue=fleet.search, dataset=known.queries
    )
    voice = replace(
        work, actor=users.lin, team=users.voice, queue=fleet.default, model=known.other_base
    )
    asked = (
        (theirs, "nightly rewrites", GPU, 8, 5.0),
        (replace(voice, priority=5), "punctuation", GPU, 8, 3.5),
        (voice, "accents of the south", NPU, 8, 2.0),
        (work, "all provinces at once", GPU, 8, 1.5),
        (work, "bigger batch", NPU, 8, 0.6),
    )
    for owner, name, chip, cards, hours in asked:
        with ago(hours=hours):
            job = submit(replace(owner, chip=chip, cards=cards), name, output="scratch")
    cycle_run(policy=SchedulingPolicy(), at=NOW)
    for attempt in Attempt.objects.filter(state="pending"):
        claim = Claim.objects.get(uid=attempt.claim_uid)
        Attempt.objects.filter(pk=attempt.pk).update(message=claim.explanation)
    return job
