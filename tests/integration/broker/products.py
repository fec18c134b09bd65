"""What a test does with a product, and what it looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.utils import timezone
from kombu import Connection, Producer

from apps.accounts.models import Team, User
from apps.jobs import services as jobs
from apps.jobs.models import Attempt, Job
from apps.jobs.selectors import latest_attempt
from apps.quotas.models import Allocation, Claim, Queue
from config.tasks import TOPICS
from controlplane.domain.jobs.lifecycle import AttemptState, JobKind, JobState
from controlplane.outbox import messages
from controlplane.persistence.models import Lease
from tests.contract.waiting import until
from tests.integration.broker.brokers import Broker
from tests.integration.broker.controllers import PATIENCE, Controller
from tests.integration.broker.plain_scripts import ENGINE

#: Runs until the file that its argument names is there.
_PROGRAM = """
import pathlib, sys, time
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    engineer: User
    team: Team
    queue: Queue
    broker: Broker
    worker: Controller
    beat: Controller
    #: Programs run until this file is there.
    gate: Path

    def submit(self) -> Job:
        """A script on one card that ends well once the gate is open."""
        request = jobs.JobRequest(
            kind=JobKind.SCRIPT,
            name="wait for the gate",
            spec={"argv": ["python", "-c", _PROGRAM, str(self.gate)]},
            queue=self.queue,
            engine=ENGINE,
        )
        return jobs.job_submit(actor=self.engineer, team=self.team, request=request)

    def open_gate(self) -> None:
        self.gate.touch(mode=0o644)

    def relay_outbox(self) -> int:
        """Relay the outbox to the broker as the worker's task would; say how many messages were sent."""
        with Connection(self.broker.url, transport_options=self.broker.options) as connection:
            producer = Producer(connection)

            def send(topic: str, payload: dict[str, object]) -> None:
                for task in TOPICS[topic]:
                    task.apply_async(kwargs=payload, producer=producer)

            return messages.relay_messages(send)

    def running(self, job: Job) -> Attempt:
        """Its newest attempt, once the program is seen to run."""
        attempt = latest_attempt(job)

        def is_running() -> bool:
            attempt.refresh_from_db()
            return attempt.state == AttemptState.RUNNING

        self._until(is_running, what="the attempt runs")
        return attempt

    def assert_succeeds_once(self, job: Job, *, supervised: bool = False) -> None:
        """Wait for the end, and check that everything happened and nothing happened twice.

        ``supervised`` starts meanwhile what has ended by itself, as the product's supervisor does.
        """

        def has_ended() -> bool:
            if supervised:
                self._start_what_ended()
            job.refresh_from_db()
            return job.ended_at is not None

        self._until(has_ended, what="the job ends")
        (attempt,) = job.attempts.all()
        assert job.state == JobState.SUCCEEDED, (job.state_reason, attempt.log_tail)
        assert events(job) == ["start", "succeed"]
        # Whether "run" is seen depends on who looked when; the end does not.
        path = [event for event in events(attempt) if event != "run"]
        assert path == ["admit", "launch", "finish", "complete"]
        claim = Claim.objects.get(uid=attempt.claim_uid)
        assert events(claim) == ["admit", "release"]
        assert not Allocation.objects.filter(claim=claim, released_at=None).exists()

    def _start_what_ended(self) -> None:
        for controller in (self.beat, self.worker):
            if controller.has_ended:
                controller.kill()
                leases_run_out()
                controller.start()

    def _until(self, condition: Callable[[], bool], *, what: str) -> None:
        try:
            until(condition, within=PATIENCE, what=what)
        except AssertionError as late:
            for controller in (self.beat, self.worker):
                late.add_note(f"the last of the {controller.name}:\n{controller.log()[-3000:]}")
            raise


def leases_run_out() -> None:
    """What time does after a death: somebody else may go on."""
    past = timezone.now() - timedelta(seconds=1)
    Lease.objects.update(expires_at=past)
    Attempt.objects.exclude(leased_until=None).update(leased_until=past)


def events(entity: Job | Attempt | Claim) -> list[str]:
    return list(entity.transitions.values_list("event", flat=True))
