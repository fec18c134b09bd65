"""The command ``ninefold`` against a live server with a real database."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from threading import Event, Thread, Timer

import pytest
import yaml
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from apps.accounts.models import User
from apps.console.api import api_collections
from apps.jobs.models import Job
from apps.models import selectors as registry
from apps.monitoring.models import AlertRule
from apps.quotas.models import CardRate, Queue
from apps.serving.models import Deployment, Route, WeightDownload
from apps.serving.services import deployments as services
from controlplane.domain.common.permissions import Scope
from controlplane.domain.common.resources import MIB
from controlplane.domain.serving.lifecycle import INITIAL_BACKOFF, WeightDownloadState
from ninefold_client.cli.objects import watched_rows
from ninefold_client.client import Client
from ninefold_client.code_archives import pack_folder
from ninefold_client.generated.api.jobs.jobs_list import jobs_list
from ninefold_client.resources import RESOURCES, resource_by_name
from ninefold_client.watch import WatchUnsupported, watch
from tests import factories
from tests.contract.waiting import until
from tests.functional.client.conftest import Ninefold, token_of
from tests.functional.sample_rows import EmptyCompany, fill
from tests.integration.company import Company
from tests.integration.serving.deployments import configuration, ready_deployment, replicas_of
from tests.s3_servers import store_options

JOB = """
apiVersion: ninefold/v1
kind: Job
metadata: {name: tune the parser, team: addresses}
spec:
  kind: finetune
  model_version: tiny
  dataset_version: addresses
  output_name: parser
"""
SHOP = """
apiVersion: ninefold/v1
kind: Deployment
metadata: {name: parcels, team: addresses}
spec: {model_version: tiny v1, replicas: 1, queue: vision}
---
apiVersion: ninefold/v1
kind: Queue
metadata: {name: vision, team: addresses}
spec:
  weight: 2
  entitlements: [{chip: cpu, guaranteed: 1}]
---
apiVersion: ninefold/v1
kind: AlertRule
metadata: {name: hot-cards}
spec: {title: Hot cards, measure: cards.temperature, op: ">", threshold: 90, severity: warning}
---
apiVersion: ninefold/v1
kind: PriorityClass
metadata: {name: hotfix}
spec: {value: 17, description: before others}
"""


def test_a_session_from_sign_in_to_sign_out(
    ninefold: Ninefold, company: Company, live_server: LiveServer, configuration_file: Path
) -> None:
    assert "Run: ninefold login" in ninefold("get", "jobs").errors

    refused = ninefold("login", live_server.url, "--token", "-", text="nfp-wrong")
    assert refused.exit_code == 1
    assert "this token is unknown, revoked or expired" in refused.errors
    assert not configuration_file.exists()

    done = ninefold(
        "login", live_server.url, "--token", "-", text=f"{token_of(company.engineer)}\n"
    )
    assert done.exit_code == 0, done.errors
    assert f"as {company.engineer.username}" in done.output
    assert configuration_file.stat().st_mode & 0o777 == 0o600

    shown = ninefold("whoami")
    assert company.engineer.username in shown.output
    assert "addresses (engineer)" in shown.output
    assert "\x1b" not in shown.output

    assert ninefold("logout").exit_code == 0
    assert ninefold("whoami").exit_code == 1


def test_version_and_completion_of_resources_need_no_server(
    ninefold: Ninefold, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ninefold("--version").output == f"ninefold {metadata.version('ninefold-client')}\n"

    for line, expected in {
        "ninefold get d": ["deployments", "datasets", "dataset-versions"],
        "ninefold describe queu": ["queues"],
        "ninefold watch w": ["weight-downloads", "webhooks"],
        "ninefold delete d": ["deployments", "datasets"],
        # Jobs, pipelines, teams and nodes are not deleted.
        "ninefold delete j": [],
        "ninefold delete p": ["priority-classes", "personal-tokens"],
        "ninefold delete t": [],
        "ninefold delete n": [],
    }.items():
        monkeypatch.setenv("_NINEFOLD_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", "2")
        assert ninefold().output.split() == expected, line


def test_created_objects_are_printed_in_each_format(
    signed_in: Ninefold, company: Company, tmp_path: Path
) -> None:
    file, rows = tmp_path / "job.yaml", tmp_path / "rows.jsonl"
    file.write_text(JOB)
    rows.write_text('{"prompt": "1?", "response": "1"}\n' * 20)
    commands = {
        "job/tune the parser": ("job", "submit", "-f", str(file)),
        "dataset/streets": ("dataset", "upload", str(rows), "--name", "streets"),
        "deployment/parcels": ("deploy", "tiny", "--name", "parcels", "--team", "addresses"),
    }
    for name, command in commands.items():
        done = signed_in(*command, "-o", "name")
        assert (done.exit_code, done.output) == (0, f"{name}\n"), done
    stored = signed_in("get", "deployment", "parcels", "-o", "json")
    rows.write_text('{"prompt": "2?", "response": "2"}\n' * 20)
    Deployment.objects.update(name="earlier")
    Route.objects.update(name="earlier")
    found = {name: signed_in(*one, "-o", "json").output for name, one in commands.items()}
    (job,) = json.loads(found["job/tune the parser"])
    assert Job.objects.filter(uid=job["uid"], name="tune the parser").exists()
    assert json.loads(found["dataset/streets"])["number"] == 2
    assert json.loads(found["deployment/parcels"]).keys() == json.loads(stored.output).keys()
    (job,) = yaml.safe_load_all(signed_in(*commands["job/tune the parser"], "-o", "yaml").output)
    assert Job.objects.filter(uid=job["uid"]).exists()
    for name in ("job/tune the parser", "deployment/parcels"):
        refused = signed_in(*commands[name], "-o", "yaml", "--wait")
        assert (refused.exit_code, "remove --wait" in refused.errors) == (1, True), refused
    assert Job.objects.count() == 3


def test_a_job_is_submitted_shown_watched_and_cancelled(
    signed_in: Ninefold, company: Company, tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB)
    submitted = signed_in("job", "submit", "-f", str(file))
    assert submitted.exit_code == 0, submitted.errors
    job = Job.objects.get()
    assert submitted.output == f"job/tune the parser submitted: {job.uid}\n"
    assert (job.model_version, job.dataset_version) == (company.model, company.dataset)

    assert signed_in("get", "j", "-o", "name").output == "job/tune the parser\n"
    assert json.loads(signed_in("get", "job", job.uid, "-o", "json").output)["uid"] == job.uid
    table = signed_in(
        "get", "jobs", "--team", "addresses", "--state", "waiting"
    ).output.splitlines()
    assert table[0].split()[:3] == ["NAME", "KIND", "STATE"]
    assert len(table) == 2
    assert "STATE=waiting" in signed_in("watch", "jobs", "--count", "1").output
    assert "tune the parser" in signed_in("describe", "job", "tune the parser").output

    with Client() as client:
        events = watch(client, "jobs", state="waiting")
        assert [next(events).type for _ in range(2)] == ["ADDED", "BOOKMARK"]
        Job.objects.update(priority=7)
        changed = next(one for one in events if one.type != "BOOKMARK")
        assert (changed.type, changed.object["priority"]) == ("MODIFIED", 7)
        Job.objects.update(priority=0)
        assert next(one for one in events if one.type != "BOOKMARK").object["priority"] == 0
        with pytest.raises(WatchUnsupported, match="usage/days cannot be watched"):
            next(watch(client, "usage/days"))

        # Objects without a uid are known by what their path has.
        CardRate.objects.create(chip="nvidia-h800", per_hour=26)
        rates = watched_rows(client, resource_by_name("card-rates"), None, every=1)
        uid, rate = next(rates)
        assert (uid, rate["per_hour"]) == ("nvidia-h800", "26.0000")
        CardRate.objects.all().delete()
        assert next(rates) == ("nvidia-h800", {"name": "nvidia-h800", "deleted": True})

    company.schedule()
    company.turn_jobs()
    cancelled = signed_in("job", "cancel", "tune the parser")
    assert cancelled.exit_code == 0, cancelled.errors
    for _ in range(5):
        company.turn_jobs()
    assert "cancelled" in signed_in("events", "tune the parser").output
    job.refresh_from_db()
    assert job.state == "cancelled"
    ended = signed_in("job", "wait", "tune the parser")
    assert (ended.exit_code, "cancelled" in ended.output) == (1, True)
    with Client() as client:
        (row,) = jobs_list(client=client, state=["cancelled"]).results
    assert (row.uid, row.team.name) == (job.uid, company.team.name)


def test_a_rollout_is_paused_resumed_undone_and_its_deployment_deleted(
    ninefold: Ninefold, company: Company, live_server: LiveServer
) -> None:
    ninefold("login", live_server.url, "--token", "-", text=token_of(company.engineer))
    deployment = ready_deployment(company)
    complete = ninefold("rollout", "status", "parser")
    assert (complete.exit_code, complete.output) == (
        0,
        "deployment parser successfully rolled out: revision 1\n",
    )
    assert ninefold("rollout", "pause", "parser").output == "deployment/parser paused: revision 1\n"
    again = ninefold("rollout", "pause", "parser")
    assert (again.exit_code, "paused cannot be paused again" in again.errors) == (1, True)
    services.deployment_revise(
        deployment=deployment,
        configuration=configuration(company, cards=2),
        actor=company.engineer,
        at=company.at,
    )
    paused = ninefold("rollout", "status", "parser")
    assert paused.exit_code == 1
    assert "0 of 1 replicas are of revision 2" in paused.output
    assert ninefold("rollout", "resume", "parser").exit_code == 0
    undone = ninefold("rollout", "undo", "parser")
    assert undone.output == "deployment/parser rolled back: revision 1\n"
    failed = ninefold("rollout", "status", "parser")
    assert (failed.exit_code, failed.output) == (
        1,
        "revision 2 of parser failed: undone by mei; revision 1 serves\n",
    )
    rows = ninefold("rollout", "history", "parser").output.splitlines()
    assert [row.split()[:2] for row in rows[1:]] == [["2", "failed"], ["1", "serving"]]
    # The newest revision was undone: the document is that of the one that serves.
    (document,) = yaml.safe_load_all(ninefold("get", "deploy", "parser", "-o", "yaml").output)
    assert document["spec"]["cards"] == 1
    assert (document["spec"]["max_surge"], document["spec"]["max_unavailable"]) == ("1", "0")

    refused = ninefold("delete", "deployment", "parser")
    assert (refused.exit_code, "Confirm with --yes" in refused.errors) == (1, True)
    with reconciled(company):
        deleted = ninefold("delete", "deployment", "parser", "--yes")
    assert deleted.output == "deployment/parser deleted\n", deleted.errors
    assert not Deployment.objects.filter(deleted_at=None).exists()


def test_logs_and_events_of_a_deployment(signed_in: Ninefold, company: Company) -> None:
    deployment = ready_deployment(company, replicas=2)
    first, second = replicas_of(deployment)
    company.cluster.write_log(first.launch_name, b"first line\nsecond line\n")
    company.cluster.write_log(second.launch_name, b"of the other replica\n")

    shown = signed_in("logs", "deployment/parser")
    assert (shown.exit_code, shown.output) == (0, "first line\nsecond line\n")
    assert f"Found 2 replicas, using {first.uid}." in shown.errors
    other = signed_in("logs", "deploy/parser", "--replica", second.uid[:12])
    assert (other.output, other.errors) == ("of the other replica\n", "")
    assert signed_in("logs", "deployment/parser", "--tail", "7").output == "d line\n"
    # Each replica has one process.
    assert signed_in("logs", "deployment/parser", "--process", "1").output == ""
    for arguments, said in (
        (("deployment/parser", "--replica", "x"), f"{first.uid} (ready)"),
        (("deployment/nothing",), "no deployment is named 'nothing'"),
        (("node/a",), "nodes have no log; use job/NAME or deployment/NAME"),
        (("parser", "--replica", "x"), "--replica is of a deployment"),
        (("parser", "--process", "1"), "--process is of a deployment"),
        (("deployment/parser", "--attempt", "1"), "--attempt is of a job"),
    ):
        refused = signed_in("logs", *arguments)
        assert refused.exit_code != 0
        assert said in " ".join(refused.errors.replace("│", " ").split()), arguments

    table = signed_in("events", "deployment/parser").output.splitlines()
    assert table[0].split() == ["TIME", "OBJECT", "EVENT", "FROM", "TO", "BY", "REASON"]
    assert sum(f"replica/{first.uid}" in line for line in table) >= 3
    assert any(" deployment " in line and " ready " in line for line in table)
    found = json.loads(signed_in("events", "deployment/parser", "-o", "json").output)
    assert [one["at"] for one in found] == sorted(one["at"] for one in found)
    names = signed_in("events", "deployment/parser", "-o", "name").output.splitlines()
    assert names == [one["event"] for one in found]
    printed = signed_in("events", "deployment/parser", "-o", "yaml").output
    assert list(yaml.safe_load_all(printed)) == found
    assert "nodes have no events" in signed_in("events", "node/a").errors


def test_a_followed_log_of_a_replica_continues_after_a_restart_and_ends_with_the_replica(
    signed_in: Ninefold, company: Company, live_server: LiveServer
) -> None:
    deployment = ready_deployment(company)
    (replica,) = replicas_of(deployment)
    company.cluster.write_log(replica.launch_name, b"first run\n")
    program = "from ninefold_client.cli.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "logs", "deployment/parser", "--follow"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        guard = Timer(60, process.kill)
        guard.start()
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "first run\n"
            company.cluster.write_log(replica.launch_name, b"it goes on\n")
            assert process.stdout.readline() == "it goes on\n"

            company.cluster.finish(replica.launch_name, exit_code=1)
            company.turn_deployments()
            company.later(INITIAL_BACKOFF)
            company.turn_deployments()
            replica.refresh_from_db()
            company.turn_deployments()
            company.cluster.write_log(replica.launch_name, b"second run\n")
            assert process.stdout.readline() == "second run\n"

            services.deployment_stop(deployment=deployment, actor=company.engineer, at=company.at)
            with reconciled(company):
                assert process.wait() == 0
        finally:
            guard.cancel()
            process.kill()


def test_events_of_a_pipeline(signed_in: Ninefold, company: Company) -> None:
    document = """
apiVersion: ninefold/v1
kind: Pipeline
metadata: {name: whole way, team: addresses}
spec:
  model_version: tiny
  steps: [{kind: finetune, dataset_version: addresses, output_name: parser}]
"""
    assert signed_in("apply", "-f", "-", text=document).exit_code == 0
    company.turn_pipelines()
    table = signed_in("events", "pipeline/whole way").output.splitlines()
    assert any("step 1" in line and "begin" in line for line in table), table


@contextmanager
def reconciled(company: Company) -> Iterator[None]:
    """Run the reconcilers of deployments in another thread."""
    ended = Event()

    def run() -> None:
        while not ended.is_set():
            company.turn_deployments()
        connection.close()

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_second_apply_changes_nothing_and_get_prints_what_apply_reads(
    ninefold: Ninefold, administrator: User, live_server: LiveServer, tmp_path: Path
) -> None:
    ninefold("login", live_server.url, "--token", "-", text=token_of(administrator))
    file = tmp_path / "shop" / "shop.yaml"
    file.parent.mkdir()
    file.write_text(SHOP)

    planned = ninefold("apply", "-f", str(file), "--dry-run")
    assert "Queue/vision created (dry run)" in planned.output
    assert not Queue.objects.filter(name="vision").exists()

    first = ninefold("apply", "-f", str(file))
    assert (first.exit_code, first.errors) == (0, "")
    names = ("PriorityClass/hotfix", "Queue/vision", "AlertRule/hot-cards", "Deployment/parcels")
    assert first.output.splitlines() == [f"{name} created" for name in names]
    second = ninefold("apply", "-f", str(file.parent))
    assert second.output.splitlines() == [f"{name} unchanged" for name in names], second.errors

    # What is printed is what exists.
    for resource, name in (
        ("queue", "vision"),
        ("ar", "hot-cards"),
        ("deploy", "parcels"),
        ("pc", "hotfix"),
    ):
        printed = ninefold("get", resource, name, "-o", "yaml").output
        again = ninefold("apply", "-f", "-", text=printed)
        assert again.output.endswith(" unchanged\n"), (printed, again)

    changed = SHOP.replace("replicas: 1", "replicas: 2").replace("threshold: 90", "threshold: 80")
    shown = ninefold("diff", "-f", "-", "--exit-code", text=changed)
    assert shown.exit_code == 1
    assert "- replicas: 1\n+ replicas: 2\n" in shown.output
    assert Deployment.objects.get().replica_count == 1
    third = ninefold("apply", "-f", "-", text=changed)
    assert third.output.count("configured") == 2, third
    assert Deployment.objects.get().replica_count == 2
    assert AlertRule.objects.get(name="hot-cards").document["threshold"] == 80
    assert Deployment.objects.get().revisions.count() == 1

    moved = ninefold("apply", "-f", "-", text=SHOP.replace("queue: vision", "queue: default"))
    assert moved.exit_code == 1
    assert "queue is 'vision' and cannot be changed to 'default'" in moved.errors


def test_errors_name_field_value_and_fix_and_others_go_on(
    signed_in: Ninefold, company: Company
) -> None:
    wrong = JOB.replace("name: tune the parser", "name: refused") + "  spec: {refuse: too large}\n"
    done = signed_in("apply", "-f", "-", text=f"{wrong}---{JOB}")
    assert (done.exit_code, done.output) == (1, "Job/tune the parser created\n")
    assert "Job/refused: Error:" in done.errors
    assert "refuse: too large" in done.errors
    assert "refuse: too large" in signed_in("apply", "-f", "-", "--dry-run", text=wrong).errors

    changed = signed_in(
        "apply", "-f", "-", text=JOB.replace("output_name: parser", "output_name: x")
    )
    assert "output_name is 'parser' and cannot be changed to 'x'" in changed.errors
    assert Job.objects.count() == 1

    assert "resources: jobs (j)" in signed_in("get", "things").errors
    assert signed_in("get", "jobs", "nothing").exit_code == 1
    assert signed_in("get", "jobs", "--nonsense").exit_code == 2
    assert signed_in("get", "nodes", "--team", "addresses").exit_code == 2


def test_weights_are_pre_downloaded_and_waited_for(
    signed_in: Ninefold, company: Company, settings: Settings
) -> None:
    # Nothing is asked of the store before the download begins.
    settings.NINEFOLD_S3 = store_options("http://127.0.0.1:9", "bucket")
    settings.NINEFOLD_ARTIFACTS = "s3"
    company.cluster.set_weight_cache(MIB)
    command = ["predownload", "tiny", "--cluster", company.cluster_row.name]
    refused = signed_in(*command, "--label", "pool=inference")
    assert (refused.exit_code, "no node of" in refused.errors) == (1, True)

    def end_downloads(state: WeightDownloadState) -> None:
        active = WeightDownload.objects.filter(state=WeightDownloadState.PENDING)
        until(lambda: active.update(state=state), what="the download is requested")
        connection.close()

    for state, exit_code in ((WeightDownloadState.SUCCEEDED, 0), (WeightDownloadState.FAILED, 1)):
        worker = Thread(target=end_downloads, args=[state])
        worker.start()
        ended = signed_in(*command, "--chip", "cpu", "--wait")
        worker.join()
        assert ended.exit_code == exit_code, ended.errors
        assert ended.output.splitlines()[-1].split()[1] == state
    listed = signed_in("get", "weight-downloads", "-o", "name").output.splitlines()
    assert listed == [f"weight-download/tiny v1 on {company.cluster_row.name}"] * 2


def test_permissions_are_those_of_the_token(
    ninefold: Ninefold, company: Company, live_server: LiveServer
) -> None:
    reader = token_of(company.engineer, Scope.READ)
    ninefold("login", live_server.url, "--token", "-", text=reader)
    assert ninefold("get", "model-versions", "-o", "name").output == "model-version/tiny v1\n"
    refused = ninefold("apply", "-f", "-", text=JOB)
    assert refused.exit_code == 1
    assert "scope" in refused.errors

    ninefold("--context", "other", "login", live_server.url, "--token", "-",
             text=token_of(company.stranger))  # fmt: skip
    other = ninefold("apply", "-f", "-", text=JOB)
    assert "no team 'addresses' is visible to you; your teams: routing" in other.errors
    queue = yaml.safe_dump(
        {"apiVersion": "ninefold/v1", "kind": "Queue", "metadata": {"name": "mine"}, "spec": {}}
    )
    assert ninefold("apply", "-f", "-", text=queue).exit_code == 1
    assert not Queue.objects.filter(name="mine").exists()
    assert ninefold("context", "default").exit_code == 0
    assert company.engineer.username in ninefold("whoami").output


def test_a_folder_is_uploaded_and_its_program_runs_as_a_job(
    signed_in: Ninefold, company: Company, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    for path, text in {
        "train.py": "print('trained')",
        "data/rows.csv": "a",
        "data/large.bin": "x",
        "data/kept.bin": "x",
        "__pycache__/train.pyc": "",
        "env311/pyvenv.cfg": "",
        ".ninefoldignore": "*.bin\n!kept.bin\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    packed = pack_folder(folder)
    assert list(packed.files) == ["train.py", "data/kept.bin", "data/rows.csv"]
    assert packed == pack_folder(folder)

    run = ("job", "run", "--folder", str(folder))
    refused = signed_in(*run, "--env", "LEVEL", "--", "python", "train.py")
    assert "write NAME=VALUE" in refused.errors
    done = signed_in(*run, "--env", "LEVEL=3", "--cards", "1", "--", "python", "train.py", "--fast")
    assert done.exit_code == 0, done.errors
    job = Job.objects.get()
    assert done.output == f"job/python train.py --fast submitted: {job.uid}\n"
    assert job.spec["argv"] == ["python", "train.py", "--fast"]
    assert job.spec["environment"] == {"LEVEL": "3"}
    assert job.code is not None
    with registry.artifact_store().open(job.code.files[0]["digest"]) as stored:
        assert stored.read() == packed.content

    named = signed_in(*run, "--name", "second", "-o", "name", "--", "python", "train.py")
    assert named.output == "job/second\n", named.errors
    third = signed_in(*run, "--name", "third", "-o", "yaml", "--", "python", "train.py")
    assert yaml.safe_load(third.output)["name"] == "third"
    refused = signed_in(*run, "-o", "json", "--wait", "--", "python", "train.py")
    assert "remove --wait and --follow" in refused.errors

    (folder / "again.py").symlink_to("train.py")
    assert pack_folder(folder).files["again.py"] == len("print('trained')")
    (folder / "outside").symlink_to("outside")
    refused = signed_in(*run, "--", "python", "train.py")
    assert refused.exit_code == 1
    assert "outside is a symbolic link" in refused.errors
    assert Job.objects.count() == 3


#: What the command line reads by other commands, or by ``ninefold api`` only.
WITHOUT_A_RESOURCE = {
    "defragmentation-plans",
    "deliveries",
    "held-back",
    "me",
    "model-versions/folders",
    "notifications",
    "queue-changes",
    "queue-tree",
    "status",
    "storage",
    "storage/plan",
    "storage/runs",
    "topology",
    "usage",
    "usage/days",
    "usage/months",
    "usage/records",
    "usage/totals",
    "what-ifs",
}


def test_every_resource_is_listed_and_described(
    ninefold: Ninefold, administrator: User, live_server: LiveServer, company: Company
) -> None:
    with transaction.atomic():
        filled = fill(EmptyCompany(team=company.team, user=company.engineer, queue=company.queue))
    factories.firing_alerts(actor=administrator, at=timezone.now())
    signed_in = ninefold("login", live_server.url, "--token", "-", text=token_of(administrator))
    assert signed_in.exit_code == 0, signed_in.errors
    listed = set()
    for resource in RESOURCES:
        found = ninefold("get", resource.name, "-o", "json")
        assert found.exit_code == 0, f"{resource.name}: {found.errors}"
        table = ninefold("get", resource.name)
        assert table.exit_code == 0, f"{resource.name}: {table.errors}"
        rows = json.loads(found.output)
        if rows:
            listed.add(resource.name)
            assert resource.name_of(rows[0]) in table.output
            named = resource.name_of if resource.is_complete else resource.uid_of
            shown = ninefold("describe", resource.name, named(rows[0]))
            assert shown.exit_code == 0, f"{resource.name}: {shown.errors}"
    assert {
        "alerts",
        "artifacts",
        "audit-events",
        "chips",
        "claims",
        "dataset-versions",
        "engines",
        "evaluations",
        "faults",
    } <= listed
    assert filled.running.name in ninefold("get", "jobs").output


def test_each_collection_of_the_api_is_a_resource_or_named_here(company: Company) -> None:
    paths = {each.path.removeprefix("/api/v1/") for each in api_collections()}
    assert paths >= WITHOUT_A_RESOURCE
    assert sorted(paths - WITHOUT_A_RESOURCE - {each.path for each in RESOURCES}) == []


def test_any_operation_is_called_by_its_path(
    signed_in: Ninefold, company: Company, tmp_path: Path
) -> None:
    created = signed_in("api", "/api/v1/keys", "-f", f"team={company.team.slug}", "-f", "name=7 a")
    assert created.exit_code == 0, created.errors
    key = json.loads(created.output)
    found = json.loads(signed_in("api", f"keys?team={company.team.slug}&page_size=1").output)
    assert [row["uid"] for row in found["results"]] == [key["uid"]]
    body = tmp_path / "body.json"
    body.write_text('{"name": "other"}')
    changed = signed_in("api", "-X", "PATCH", f"keys/{key['uid']}", "--input", str(body))
    assert json.loads(changed.output)["name"] == "other"
    deleted = signed_in("api", "-X", "DELETE", f"keys/{key['uid']}")
    assert (deleted.exit_code, deleted.output) == (0, "")

    for arguments, code, message in (
        (("keys/none",), 1, "not-found"),
        (("keys", "-f", "name"), 2, "a field is"),
        (("keys", "-X", "GET", "-f", "a=1"), 2, "no body"),
        (("keys", "--input", str(tmp_path / "missing")), 2, "cannot be read"),
        (("keys", "--input", str(tmp_path / "missing"), "-f", "a=1"), 2, "not by both"),
    ):
        done = signed_in("api", *arguments)
        assert (
            done.exit_code,
            message in done.errors.lower().replace("name=value", "NAME=VALUE"),
        ) == (code, True), done.errors
