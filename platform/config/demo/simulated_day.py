"""Simulate a day of jobs in minutes: generate the jobs, and run the controllers of the product at past instants.

::

    for each interval of the day, with every simulated clock held there:
        submit the jobs of the interval  ─▶  one scheduling cycle  ─▶  launch admitted jobs
        ─▶  record reports of processes  ─▶  reconcile each attempt that has changed

The simulated clusters stand still until the day is complete. An interrupted day continues from where their
clocks stand.

The jobs are seeded, so that every demo has the same day. Arrivals follow an hourly rate that is higher during
working hours. Job sizes follow published cluster traces: most jobs are small, and the few large ones use most
of the cards.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from apps.fleet.models import Node
from apps.fleet.reconcilers import inventories_sync
from apps.jobs import selectors, services
from apps.jobs.models import Attempt, Job
from apps.jobs.reconcilers.attempts import attempts_reconcile
from apps.quotas import tasks as quotas
from apps.quotas.reconcilers import cycle_run
from config import simulated_clusters
from config.demo.sample_company import DemoCompany
from config.tasks import TOPICS
from controlplane.adapters.clusters.simulated import SimulatedCluster
from controlplane.adapters.clusters.simulated.progress_reports import ReportRejected
from controlplane.adapters.clusters.simulated.store import ReportTarget
from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.domain.simulation.run_profiles import seeded_random
from controlplane.outbox import messages

#: Jobs an hour by the hour of the day in UTC, for all teams together.
_A_QUIET_HOUR, _A_BUSY_HOUR = 12, 26
_BUSY = range(6, 18)
#: Cards of a training → how often.
_SIZES = {1: 20, 2: 16, 4: 12, 8: 30, 16: 13, 32: 8, 64: 4}
#: Chips → how often; a preference with a second choice now and then.
_CHIPS: dict[tuple[str, ...], int] = {
    ("nvidia-h800",): 22,
    ("nvidia-h800", "nvidia-a800-80gb"): 8,
    ("nvidia-a800-80gb",): 14,
    ("nvidia-h20",): 14,
    ("ascend-910b3",): 22,
    ("ascend-910c",): 20,
}
#: Cards of the second generation come in pairs.
_PAIRED = "ascend-910c"
_KINDS = {JobKind.FINETUNE: 84, JobKind.EVALUATE: 8, JobKind.SCRIPT: 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoJobRequest:
    """One job to submit."""

    at: datetime
    #: Index of the team in the company.
    team: int
    topic: int
    kind: JobKind
    cards: int
    chips: tuple[str, ...]
    engine: str
    learning_rate: float


def demo_job_requests(
    *, since: datetime, until: datetime, shares: tuple[int, ...]
) -> Iterator[DemoJobRequest]:
    """Yield the jobs submitted after ``since`` and not after ``until``, in order, by shares of the teams."""
    hour = since.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    while hour <= until:
        yield from (one for one in _random_jobs_of_hour(hour, shares) if since < one.at <= until)
        hour += timedelta(hours=1)


def _random_jobs_of_hour(hour: datetime, shares: tuple[int, ...]) -> list[DemoJobRequest]:
    rng = seeded_random("demo", hour.isoformat())
    count = _A_BUSY_HOUR if hour.hour in _BUSY else _A_QUIET_HOUR
    minutes = sorted(rng.uniform(0, 60) for _ in range(count))
    return [_random_job_request(hour + timedelta(minutes=minute), shares) for minute in minutes]


def _random_job_request(at: datetime, shares: tuple[int, ...]) -> DemoJobRequest:
    rng = seeded_random("demo", at.isoformat())
    (kind,) = rng.choices(list(_KINDS), weights=list(_KINDS.values()))
    (chips,) = rng.choices(list(_CHIPS), weights=list(_CHIPS.values()))
    (cards,) = rng.choices(list(_SIZES), weights=list(_SIZES.values()))
    (team,) = rng.choices(range(len(shares)), weights=shares)
    gpu = chips[0].startswith("nvidia")
    if kind is JobKind.EVALUATE and not gpu:
        # What evaluates runs on GPUs.
        chips, gpu = ("nvidia-a800-80gb",), True
    if kind is not JobKind.FINETUNE:
        cards = 1
    elif chips == (_PAIRED,) and cards > 1 and cards < 16:
        cards = max(2, cards)
    engine = "transformers" if kind is not JobKind.FINETUNE else rng.choice(_TRAINERS[gpu])
    return DemoJobRequest(
        at=at,
        team=team,
        topic=rng.randrange(4),
        kind=kind,
        cards=cards,
        chips=chips,
        engine=engine,
        learning_rate=rng.choice((1e-5, 2e-5, 5e-5, 1e-4, 2e-4)),
    )


#: On GPUs, and not.
_TRAINERS = {True: ("llamafactory", "ms_swift"), False: ("ms_swift", "llamafactory")}


INTERVAL = timedelta(minutes=15)
#: Report interval of processes while the past is simulated.
_REPORTS = timedelta(hours=2)
#: No limit.
_ALL = 100_000


class DemoDay:
    """Simulates the jobs of one company, interval by interval."""

    def __init__(self, company: DemoCompany, *, since: datetime, until: datetime) -> None:
        self._company = company
        self._since, self._until = since, until
        self._shares = tuple(demo_team.description.share for demo_team in company.teams)
        #: Stage of each Launch at the last observation.
        self._stages: dict[str, str] = {}

    def run(self, *, report: Callable[[datetime], None]) -> None:
        """Simulate from ``since`` to ``until``; then release the clocks."""
        with connection.cursor() as cursor:
            # A crash loses the last moments only, and they are simulated again.
            cursor.execute("SET synchronous_commit TO OFF")
        at = self._since
        while at < self._until:
            before, at = at, min(self._until, at + INTERVAL)
            self._simulate_interval(before, at)
            report(at)
        for cluster in self._company.clusters:
            cluster.hold(None)

    def _simulate_interval(self, before: datetime, at: datetime) -> None:
        for request in demo_job_requests(since=before, until=at, shares=self._shares):
            with time_frozen_at(request.at):
                submit_demo_job(self._company, request)
        for cluster in self._company.clusters:
            cluster.hold(at)
        with time_frozen_at(at):
            self._inject_faults(after=before, at=at)
            cycle_run(policy=SchedulingPolicy(), at=at)
            _relay_outbox()
            simulated_clusters.report_simulated_processes(
                listener=InProcessAttemptReporter(), interval=_REPORTS, limit=_ALL
            )
            for cluster in self._company.clusters:
                for uid in self._changed_attempts(cluster):
                    attempts_reconcile(at=at, uids=(uid,))
            _relay_outbox()

    def _changed_attempts(self, cluster: SimulatedCluster) -> list[str]:
        """Return the uids of attempts that changed since the last interval."""
        names = cluster.names()
        live = [name for name in names if self._stages.get(name) != "ended"]
        changed = []
        for name, seen in cluster.observe(live).items():
            stage = "ended" if seen.ended else seen.replicas[0].phase.value
            if self._stages.get(name) != stage:
                self._stages[name] = stage
                changed.append(str(seen.labels["uid"]))
        return changed

    def _inject_faults(self, *, after: datetime, at: datetime) -> None:
        """Inject and clear the faults that are due."""
        gpus, npus = self._company.clusters
        first = not Node.objects.filter(cluster__kind=simulated_clusters.KIND).exists()
        faults = (
            (timedelta(hours=9), lambda: gpus.faults.kill_card("h800-17", 3)),
            (
                timedelta(hours=6),
                lambda: npus.faults.make_unreachable("a2-09", message="no heartbeat"),
            ),
            (timedelta(hours=5), lambda: gpus.faults.slow_card("a800-05", 1, slowness=1.6)),
            (timedelta(hours=4), lambda: npus.faults.recover("a2-09")),
            (timedelta(hours=2), lambda: npus.faults.kill_card("a3-21", 10, message="HBM ECC")),
        )
        due = [inject for before, inject in faults if after < self._until - before <= at]
        for inject in due:
            inject()
        if due or first:
            inventories_sync(at=at)


def _relay_outbox() -> None:
    """Relay all outbox messages now. One cycle per interval is enough, so none is run per claim."""
    while messages.relay_messages(_run_outbox_handlers):
        pass


def _run_outbox_handlers(topic: str, payload: dict[str, Any]) -> None:
    for task in TOPICS[topic]:
        if task is not quotas.schedule:
            task(**payload)


@contextmanager
def time_frozen_at(at: datetime) -> Iterator[None]:
    """Freeze ``timezone.now`` at that instant; for single-threaded processes only."""
    real = timezone.now
    timezone.now = lambda: at
    try:
        yield
    finally:
        timezone.now = real


class InProcessAttemptReporter:
    """Calls the services behind the attempt endpoints directly, with the same token."""

    def progress(self, report: ReportTarget, points: Sequence[Mapping[str, Any]]) -> None:
        services.attempt_progress_store(
            attempt=_reported_attempt(report), points=points, at=timezone.now()
        )

    def file(self, report: ReportTarget, path: str, content: bytes) -> None:
        services.attempt_file_receive(
            attempt=_reported_attempt(report),
            path=path,
            sha256=hashlib.sha256(content).hexdigest(),
            size=len(content),
            chunks=[content],
        )

    def manifest(self, report: ReportTarget, manifest: Mapping[str, Any]) -> None:
        services.attempt_manifest_store(attempt=_reported_attempt(report), manifest=manifest)


def _reported_attempt(report: ReportTarget) -> Attempt:
    uid = report.url.rstrip("/").rpartition("/")[2]
    attempt = selectors.attempt_by_token(uid=uid, token=report.token)
    if attempt is None:
        raise ReportRejected("the attempt has ended")
    return attempt


log = logging.getLogger(__name__)


def submit_demo_job(company: DemoCompany, request: DemoJobRequest) -> Job | None:
    """Submit the job; None if the product refuses it."""
    demo_team = company.teams[request.team]
    topic = demo_team.description.topics[request.topic]
    try:
        return services.job_submit(
            actor=demo_team.engineer,
            team=demo_team.team,
            request=services.JobRequest(
                kind=request.kind,
                name=_demo_job_name(request, topic),
                spec=_job_spec(request),
                queue=demo_team.queue,
                engine=request.engine,
                model_version=None if request.kind is JobKind.SCRIPT else company.model,
                dataset_version=None if request.kind is JobKind.SCRIPT else demo_team.dataset,
                output_name=topic.replace(" ", "-") if request.kind is JobKind.FINETUNE else "",
                chips=request.chips,
                cards=request.cards,
            ),
        )
    except services.SpecRefused as refusal:
        log.warning("a job of the demonstration was refused", extra={"reason": str(refusal)})
        return None


def _demo_job_name(request: DemoJobRequest, topic: str) -> str:
    match request.kind:
        case JobKind.EVALUATE:
            return f"measure {topic}"
        case JobKind.SCRIPT:
            return f"prepare rows for {topic}"
        case _:
            return f"{topic}, learning rate {request.learning_rate:g}"


def _job_spec(request: DemoJobRequest) -> dict[str, object]:
    match request.kind:
        case JobKind.EVALUATE:
            return {"split": "test"}
        case JobKind.SCRIPT:
            return {"argv": ["python", "prepare.py"], "maximum_run_time_seconds": 6 * 3600}
        case _:
            return {"learning_rate": request.learning_rate, "method": "lora"}
