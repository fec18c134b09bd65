"""Fine-tuning without a shared volume: the process is killed, and the next attempt has an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from apps.jobs.models import Attempt, AttemptCheckpoint
from apps.jobs.selectors import attempt_token, latest_attempt
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.ports.engines import EngineTask
from ninefold_runtime import checkpoints
from ninefold_runtime.exit_codes import ExitCode
from tests import s3_servers
from tests.contract.waiting import until
from tests.engine.conftest import SMALL, Start, complete_spec
from tests.integration.company import Company
from tests.integration.founding import committed_company, installation
from tests.s3_servers import s3_url

__all__ = ["committed_company", "installation", "s3_url"]

WITHIN = 300.0


def test_a_killed_run_goes_on_from_its_stored_checkpoint_with_an_empty_folder(
    committed_company: Company,
    live_server: LiveServer,
    s3_url: str,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    start: Start,
    inputs: Path,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(FakeCluster, "loses_checkpoints", True, raising=False)
    settings.NINEFOLD_CHECKPOINT_UPLOAD_SECONDS = 0
    settings.NINEFOLD_ARTIFACTS = "s3"
    settings.NINEFOLD_S3 = s3_servers.store_options(s3_url, s3_servers.new_bucket(s3_url))
    company = committed_company
    job, attempt = company.running()

    def environment(attempt: Attempt) -> dict[str, str]:
        """What the cluster gives to the process of the attempt."""
        (role,) = company.cluster.launched(attempt.launch_name).roles
        return {
            **role.environment,
            "NINEFOLD_REPORT_URL": f"{live_server.url}/api/v1/attempts/{attempt.uid}",
            "NINEFOLD_ATTEMPT_TOKEN": attempt_token(attempt),
        }

    spec = complete_spec(EngineTask.FINETUNE, **(dict(SMALL) | {"max_steps": 2000}))
    first, second = tmp_path / "first", tmp_path / "second"
    killed = start(
        EngineTask.FINETUNE, spec, inputs=inputs, work=first, environment=environment(attempt)
    )
    until(AttemptCheckpoint.objects.exists, what="a stored checkpoint", within=WITHIN)
    killed.process.kill()
    killed.finish()
    stored = AttemptCheckpoint.objects.order_by("-step")[0]
    assert stored.attempt == attempt
    assert stored.step < 2000

    company.cluster.lose(attempt.launch_name)
    company.turn_jobs()
    company.schedule()
    company.turn_jobs()
    again = latest_attempt(job)
    assert again != attempt
    company.cluster.run(again.launch_name)
    company.turn_jobs()
    resumed = start(
        EngineTask.FINETUNE,
        spec | {"max_steps": stored.step + 20},
        inputs=inputs,
        work=second,
        environment=environment(again),
    )
    resumed.wait_for(f"going on from the checkpoint at step {stored.step}")
    assert resumed.finish() == ExitCode.FINISHED, resumed.text()
    steps = [line for line in resumed.lines if line.startswith("step ")]
    assert int(steps[0].split("/")[0].removeprefix("step ")) > stored.step
    assert resumed.losses()[-1] < killed.losses()[0]
    # Both folders hold no more than the checkpoints of the trainer.
    for work in (first, second):
        assert checkpoints.newest_checkpoint(work / "checkpoints") is not None
    assert not (second / "checkpoints" / "downloading").exists()

    again.refresh_from_db()
    company.cluster.finish(again.launch_name)
    company.turn_jobs()
    company.turn_jobs()
    job.refresh_from_db()
    assert job.state == "succeeded", job.state_reason
    assert not AttemptCheckpoint.objects.exists()
