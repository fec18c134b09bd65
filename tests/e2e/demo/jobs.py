"""Jobs in every state: the past of a team, and what goes on now."""

from __future__ import annotations

from dataclasses import dataclass, replace

from apps.jobs.models import Job
from apps.models.models import ModelVersion
from tests.e2e.demo import ended, unended
from tests.e2e.demo.fleet import Fleet
from tests.e2e.demo.registry import Registry
from tests.e2e.demo.users import Users
from tests.e2e.demo.work import Work, finetune


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    waiting: Job
    preparing: Job
    running: Job
    stopping: Job
    failed: Job
    cancelled: Job
    succeeded: Job
    #: Fine-tunes that began from the same version: worth comparing.
    siblings: tuple[Job, ...]
    evaluation: Job
    script: Job
    #: Of Search.
    theirs: Job
    tuned: ModelVersion
    theirs_tuned: ModelVersion
    #: Quantized, and accepted by its figures.
    quantized: ModelVersion
    #: Quantized, and not.
    unfit: ModelVersion


def jobs(users: Users, fleet: Fleet, known: Registry) -> Jobs:
    work = Work(
        actor=users.ada,
        team=users.maps,
        queue=fleet.maps,
        model=known.base,
        dataset=known.addresses,
    )
    first, v1 = finetune(work, "first try", days=60, fleet=fleet, loss=0.62)
    _again, v2 = finetune(replace(work, model=v1), "more rows", days=33, fleet=fleet, loss=0.44)
    siblings = []
    tuned = v2
    for number, (rate, loss) in enumerate(((1e-4, 0.36), (2e-4, 0.29), (4e-4, 0.41))):
        job, version = finetune(
            replace(work, model=v2),
            f"learning rate {rate:g}",
            days=6 - number / 4,
            fleet=fleet,
            loss=loss,
            spec={"learning_rate": rate},
        )
        siblings.append(job)
        tuned = version if loss < 0.3 else tuned
    theirs, theirs_tuned = finetune(
        Work(
            actor=users.noor,
            team=users.search,
            queue=fleet.default,
            model=known.base,
            dataset=known.queries,
        ),
        "rewrite queries",
        days=12,
        fleet=fleet,
        output="query-rewriter",
    )
    evaluation = ended.evaluations(work, fleet, (v1, v2, tuned))
    quantized, unfit = ended.quantized(replace(work, model=tuned), fleet)
    script = ended.script(work, fleet)
    ended.history(work, fleet)
    failed = ended.failed(work, fleet)
    unended.others(work, users, fleet, known)
    running = unended.running(replace(work, model=tuned), fleet)
    return Jobs(
        preparing=unended.preparing(work, fleet),
        running=running,
        stopping=unended.stopping(work, fleet),
        failed=failed,
        cancelled=ended.cancelled(work),
        waiting=unended.pressure(work, users, fleet, known),
        succeeded=siblings[1],
        siblings=(first, *siblings),
        evaluation=evaluation,
        script=script,
        theirs=theirs,
        tuned=tuned,
        theirs_tuned=theirs_tuned,
        quantized=quantized,
        unfit=unfit,
    )
