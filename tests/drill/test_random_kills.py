"""SIGKILL, at random instants, every process of a product and of its training jobs.

Two fine-tunes run at any time; whichever ends is followed by another one until the schedule is over. Every job
must then have succeeded with exactly one version, no card may ever have been allocated twice, and every claim must
be released. ``NINEFOLD_DRILL_SECONDS`` sets the length of the schedule, ``NINEFOLD_DRILL_SEED`` its seed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from tests.e2e.main_job import ENDED, ENGINE_WITHIN, MODEL, ROOT
from tests.e2e.product import Product, processes, running_product
from tests.e2e.rest_client import Refused, RestClient
from tests.e2e.waiting import wait_until

pytestmark = [pytest.mark.full, pytest.mark.product, pytest.mark.engine]

T = TypeVar("T")

SECONDS = float(os.environ.get("NINEFOLD_DRILL_SECONDS", "40"))
SEED = int(os.environ.get("NINEFOLD_DRILL_SEED", "7"))
SERVICES = ("web", "worker", "beat", "gateway", "watcher", "agent", "postgres")
TRAINER = "trainer"
#: Between two kills, in seconds.
PAUSE = (0.5, 3.0)
#: Within which a product under fire answers again, and ends what it has begun.
ANSWERS_WITHIN = 180.0
ENDS_WITHIN = 600.0
#: Printed by ``manage.py shell``: cards allocated twice at one instant, and what is still held.
AUDIT = """
import json
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute('''
        SELECT count(*) FROM quotas_allocation a JOIN quotas_allocation b ON a.card_id = b.card_id AND a.id < b.id
         WHERE tstzrange(a.allocated_at, a.released_at) && tstzrange(b.allocated_at, b.released_at)
    ''')
    twice = cursor.fetchone()[0]
    cursor.execute("SELECT count(*) FROM quotas_allocation WHERE released_at IS NULL")
    held = cursor.fetchone()[0]
    cursor.execute("SELECT count(*) FROM quotas_claim WHERE state <> 'released'")
    claims = cursor.fetchone()[0]
    cursor.execute('''
        SELECT j.uid, count(v.id) FROM jobs_job j JOIN jobs_attempt a ON a.job_id = j.id
          LEFT JOIN registry_modelversion v ON v.attempt_uid = a.uid WHERE j.kind = 'finetune' GROUP BY j.uid
    ''')
    versions = dict(cursor.fetchall())
    print("AUDIT", json.dumps({"twice": twice, "held": held, "claims": claims, "versions": versions}))
"""


def targets(draws: random.Random) -> Iterator[str]:
    """What is killed, without end: each process once in every round, in a random order."""
    while True:
        yield from draws.sample((*SERVICES, TRAINER), len(SERVICES) + 1)


def patiently(call: Callable[[], T], *, what: str) -> T:
    """What the product answers once it answers at all."""
    refused: list[str] = []

    def attempt() -> list[T]:
        try:
            return [call()]
        except (OSError, Refused, ValueError) as error:
            # Refused by what is being started again, or cut off by a kill; anything else is the product's mistake.
            if isinstance(error, Refused) and error.status < 500:
                raise
            refused.append(str(error))
            return []

    try:
        return wait_until(attempt, bool, within=ANSWERS_WITHIN, what=what)[0]
    except TimeoutError:
        raise AssertionError(f"{what}: {refused[-3:]}") from None


@dataclass(kw_only=True)
class Drill:
    product: Product
    client: RestClient
    model: str
    dataset: str
    draws: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    submitted: int = 0

    def submit(self) -> None:
        """One more fine-tune, with a checkpoint every few steps."""
        self.submitted += 1
        name = f"drill-{self.submitted}"
        body = {
            "kind": "finetune",
            "name": name,
            "model_version": self.model,
            "dataset_version": self.dataset,
            "output_name": name,
            "spec": {
                "max_steps": 150,
                "checkpoint_every_steps": 10,
                "log_every_steps": 5,
                "validation_split": None,
            },
            "retry_policy": {"max_retries": 20, "backoff_seconds": 1, "max_backoff_seconds": 2},
        }

        def once() -> None:
            # A request that was cut off may have been carried out.
            if not any(job["name"] == name for job in self.jobs()):
                self.client.post("jobs", body)

        patiently(once, what=f"the submission of {name}")

    def jobs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.get("jobs", text="drill-", page_size=200)[
            "results"
        ]
        return found

    def live(self) -> list[dict[str, Any]]:
        jobs = patiently(self.jobs, what="the list of jobs")
        return [job for job in jobs if job["state"] not in ENDED]

    def kill(self, target: str) -> None:
        victims = self._trainers() if target == TRAINER else self._service(target)
        if not victims:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            self.draws.choice(victims).kill()
            self.kills[target] += 1

    def _trainers(self) -> list[psutil.Process]:
        return _sorted(processes(self.product, "ninefold_runtime", "finetune"))

    def _service(self, name: str) -> list[psutil.Process]:
        """Every process of it but its guard; of PostgreSQL the one that takes the others with it."""
        with contextlib.suppress(OSError, ValueError, psutil.NoSuchProcess):
            if name == "postgres":
                pid = (self.product.home / "pg/data/postmaster.pid").read_text().split()[0]
                return [psutil.Process(int(pid))]
            record = json.loads((self.product.home / "run/supervisor.json").read_text())
            guard = next(one["pid"] for one in record["processes"] if one["name"] == name)
            if guard:
                return _sorted(psutil.Process(guard).children(recursive=True))
        return []

    def audit(self) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "manage.py", "shell", "-v", "0", "-c", AUDIT],
            cwd=ROOT,
            env={**self.product.environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("AUDIT ")]
        if not lines:
            raise OSError(f"the audit failed: {done.stderr[-2000:]}")
        found: dict[str, Any] = json.loads(lines[0].removeprefix("AUDIT "))
        return found


def _sorted(found: list[psutil.Process]) -> list[psutil.Process]:
    return sorted(found, key=lambda process: process.pid)


@pytest.fixture
def drill() -> Iterator[Drill]:
    with running_product(NINEFOLD_LOCAL_CARDS="2") as product:
        client = product.client()
        versions = wait_until(
            lambda: client.get("model-versions", model=MODEL)["results"],
            bool,
            within=ENGINE_WITHIN,
            what="the sample model",
        )
        sample = Path(str(files("ninefold_runtime.samples") / "data" / "addresses.jsonl"))
        dataset = client.upload("datasets", file=sample, name="addresses-of-the-drill")
        yield Drill(
            product=product,
            client=client,
            model=versions[0]["uid"],
            dataset=dataset["uid"],
            draws=random.Random(SEED),
        )


def test_jobs_survive_random_kills_of_every_process(drill: Drill) -> None:
    for _ in range(2):
        drill.submit()
    wait_until(
        drill._trainers, lambda found: len(found) >= 2, within=ENDS_WITHIN, what="two trainers"
    )
    ends_at = time.monotonic() + SECONDS
    for target in targets(drill.draws):
        if time.monotonic() > ends_at:
            break
        drill.kill(target)
        # The pause is the schedule itself: nothing is waited for.
        time.sleep(drill.draws.uniform(*PAUSE))
        if target == TRAINER:
            for _ in range(2 - len(drill.live())):
                drill.submit()

    wait_until(drill.live, lambda live: not live, within=ENDS_WITHIN, what="the end of all jobs")

    jobs = patiently(drill.jobs, what="the list of jobs")
    context = f"seed {SEED}, kills {dict(drill.kills)}"
    ends = {job["name"]: (job["state"], job["state_reason"]["message"]) for job in jobs}
    assert {state for state, _ in ends.values()} == {"succeeded"}, f"{context}: {ends}"
    assert len(jobs) == drill.submitted >= 2
    audit = patiently(drill.audit, what="the audit")
    assert audit["twice"] == 0, f"{context}: {audit}"
    assert (audit["held"], audit["claims"]) == (0, 0), f"{context}: {audit}"
    assert {audit["versions"][job["uid"]] for job in jobs} == {1}, f"{context}: {audit}"
    assert set(drill.kills) == {*SERVICES, TRAINER}, context
    print(f"{context}, {len(jobs)} jobs")
