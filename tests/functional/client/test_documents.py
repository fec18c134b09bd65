"""Documents of every kind: created by ``apply``, printed by ``get``, and unchanged when applied again."""

from __future__ import annotations

import gzip
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import transaction
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from apps.accounts.models import ApplySet, Membership, Team, User
from apps.fleet.models import Node
from apps.jobs.models import Job
from apps.models.models import Artifact, ArtifactKind, ModelVersion
from apps.models.selectors import artifact_store
from apps.monitoring.models import AlertReceiver, AlertRoute, AlertSilence
from apps.quotas.models import Claim, PriorityClass, Queue
from apps.serving.models import ApiKey, Deployment, RouteBackend
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.serving.lifecycle import DeploymentState
from ninefold_client.apply import KINDS
from ninefold_client.client import Client
from ninefold_client.code_archives import pack_folder
from ninefold_client.resources import RESOURCE_OF_KIND
from tests import factories
from tests.documented_examples import CI_FILES, GITOPS, documents_of_pages
from tests.functional.client.conftest import Ninefold, token_of
from tests.hubs import LocalHub
from tests.integration.company import Company, model_contents

COMPANY = """
kind: Team
metadata: {name: maps}
spec:
  title: Maps
  members: [{user: mei, roles: [engineer, viewer]}, {user: otto, roles: [administrator]}]
---
kind: CompanyRoles
metadata: {name: otto}
spec: {roles: [operator]}
---
kind: PriorityClass
metadata: {name: hotfix}
spec: {value: 17, description: before others}
---
kind: MetricSource
metadata: {name: exporters}
spec:
  cluster: CLUSTER
  kind: exporter
  options: {vendor: nvidia, targets: [{url: "https://1.1.1.1:9400/metrics"}]}
  every: 60
  enabled: false
  token: {from_env: SCRAPE}
---
kind: Queue
metadata: {name: vision, team: addresses}
spec: {weight: 2, entitlements: [{chip: cpu, guaranteed: 1}]}
---
kind: AlertReceiver
metadata: {name: on-call}
spec: {kind: webhook, url: {from_env: HOOK}, active: false}
---
kind: AlertRoute
metadata: {name: critical}
spec: {severity: critical, matchers: [severity=critical], receivers: [on-call]}
---
kind: AlertRule
metadata: {name: hot-cards}
spec: {title: Hot cards, measure: cards.temperature, op: ">", threshold: 90, severity: warning}
---
kind: Silence
metadata: {name: move of rack 7}
spec: {matchers: [cluster=west, "node=rack-7-*"], ends_at: TOMORROW, reason: racks move}
---
kind: HealthPolicy
metadata: {name: default}
spec: {automatic: false, settings: {settle: 300}}
---
kind: HealthRule
metadata: {name: hot}
spec:
  {title: Hot, condition: {metric: temperature, op: ">", value: 90}, level: 1, enabled: true}
---
kind: Webhook
metadata: {name: build, team: addresses}
spec: {url: "https://1.1.1.1/hook", kinds: [job.succeeded, job.failed], active: false}
---
kind: StorageQuota
metadata: {name: addresses}
spec: {limit: 1000000000}
---
kind: RetentionRules
metadata: {name: addresses}
spec: {enabled: true, keep_versions: 5, log_days: 30}
---
kind: CardRate
metadata: {name: nvidia-h800}
spec: {per_hour: 26.5}
---
kind: MaintenanceRollout
metadata: {name: driver 580}
spec:
  {cluster: CLUSTER, labels: {name: NODE}, argv: [/usr/bin/update, --to, "580"], run_within: 900, burn_in: false}
---
kind: Dataset
metadata: {name: streets, team: addresses}
spec: {description: from the map, file: streets.jsonl}
---
kind: Job
metadata: {name: tune the parser, team: addresses}
spec: {kind: finetune, model_version: tiny, dataset_version: streets, output_name: parser, queue: default}
---
kind: Pipeline
metadata: {name: whole way, team: addresses}
spec:
  model_version: tiny@1
  steps:
  - {kind: finetune, dataset_version: streets@1, output_name: parser}
  - {kind: evaluate, dataset_version: streets, spec: {metrics: [exact_match]},
     gate: {metric: exact_match, threshold: 0.8}}
---
kind: Deployment
metadata: {name: parcels, team: addresses}
spec: {model_version: tiny, replicas: 1, queue: default}
---
kind: Deployment
metadata: {name: parcels-next, team: addresses}
spec: {model_version: tiny, replicas: 1, queue: default}
---
kind: Route
metadata: {name: parcels}
spec: {backends: [{deployment: parcels-next, weight: 1}, {deployment: parcels, weight: 9}]}
"""
#: Kinds whose objects exist before, because a document does not create them or needs a real cluster for it.
EXISTING = {
    "Model": "tiny",
    "GatewayKey": "nightly",
    "PersonalToken": "walk",
    # Documents accept the slug of a team as well; what is printed has its name.
    "StorageQuota": "Addresses",
    "RetentionRules": "Addresses",
}


def _with_versions(documents: str) -> str:
    return "---".join(f"\napiVersion: ninefold/v1{one}" for one in documents.split("---"))


@pytest.fixture
def administered(ninefold: Ninefold, administrator: User, live_server: LiveServer) -> Ninefold:
    """The command line of an administrator of the company."""
    done = ninefold("login", live_server.url, "--token", "-", text=token_of(administrator))
    assert done.exit_code == 0, done.errors
    return ninefold


@pytest.fixture
def folder(tmp_path: Path, company: Company, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with documents of the company and a dataset."""
    monkeypatch.setenv("SCRAPE", "scrape-secret")
    monkeypatch.setenv("HOOK", "https://1.1.1.1/hook-secret")
    folder = tmp_path / "company"
    folder.mkdir()
    documents = COMPANY.replace("CLUSTER", company.cluster_row.name)
    documents = documents.replace("NODE", Node.objects.get().name)
    # Without quotes: YAML reads a time.
    tomorrow = timezone.now().replace(microsecond=0) + timedelta(days=1)
    documents = documents.replace("TOMORROW", tomorrow.isoformat())
    (folder / "company.yaml").write_text(_with_versions(documents))
    (folder / "streets.jsonl").write_text(
        "".join(f'{{"prompt": "{n}?", "response": "{n}"}}\n' for n in range(20))
    )
    return folder


def test_documents_of_every_kind_are_printed_as_apply_reads_them(
    administered: Ninefold, company: Company, folder: Path
) -> None:
    planned = administered("apply", "-f", str(folder), "--dry-run")
    assert planned.exit_code == 0, planned.errors
    first = administered("apply", "-f", str(folder))
    assert (first.exit_code, first.errors) == (0, "")
    second = administered("apply", "-f", str(folder))
    assert {line.rsplit(" ", 1)[1] for line in second.output.splitlines()} == {"unchanged"}, second
    assert (
        administered("key", "create", "nightly", "--team", "addresses", "--days", "9").exit_code
        == 0
    )
    assert administered("token", "create", "walk").output.startswith("nfp-")

    documents = yaml.safe_load_all((folder / "company.yaml").read_text())
    names = {one["kind"]: one["metadata"]["name"] for one in documents} | EXISTING
    names["Cluster"] = company.cluster_row.name
    faulty = {}
    for kind in KINDS:
        printed = administered("get", RESOURCE_OF_KIND[kind].name, names[kind], "-o", "yaml")
        assert "secret" not in printed.output
        again = administered("apply", "-f", "-", text=printed.output)
        if again.output != f"{kind}/{names[kind]} unchanged\n":
            faulty[kind] = (printed, again)
    assert not faulty


def test_lists_are_printed_as_apply_reads_them(
    administered: Ninefold, company: Company, folder: Path
) -> None:
    """Also with a job of an earlier one's name, and a key that was revoked and created again."""
    assert administered("apply", "-f", str(folder)).exit_code == 0
    company.submit("twice")
    company.submit("twice")
    for _ in range(2):
        ApiKey.objects.update(revoked_at=company.at)
        created = administered("key", "create", "nightly", "--team", "addresses", "--days", "9")
        assert created.exit_code == 0
    faulty = {}
    for kind in KINDS:
        printed = administered("get", RESOURCE_OF_KIND[kind].name, "-o", "yaml")
        again = administered("apply", "-f", "-", text=printed.output)
        outcomes = {line.rsplit(" ", 1)[1] for line in again.output.splitlines()}
        if again.exit_code or outcomes != {"unchanged"}:
            faulty[kind] = (printed, again)
    assert not faulty
    jobs = administered("get", "jobs", "-o", "yaml")
    assert "1 of 3 jobs are left out" in jobs.errors


def test_the_document_of_an_expired_silence_changes_nothing(administered: Ninefold) -> None:
    at, later = timezone.now(), timezone.now() + timedelta(hours=9)
    document: dict[str, Any] = {
        "apiVersion": "ninefold/v1",
        "kind": "Silence",
        "metadata": {"name": "move"},
        "spec": {"matchers": ["cluster=west"], "ends_at": later, "reason": "racks move"},
    }

    def apply(*options: str, **spec: object) -> Any:
        text = yaml.safe_dump({**document, "spec": {**document["spec"], **spec}})
        return administered("apply", "-f", "-", *options, text=text)

    pruned = ("--prune", "--set", "moves")
    assert apply(*pruned).output == "Silence/move created\n"
    extended = later + timedelta(hours=1)
    assert apply(*pruned, ends_at=extended.isoformat()).output == "Silence/move configured\n"
    silence = AlertSilence.objects.get()
    assert silence.ends_at == extended

    AlertSilence.objects.update(began_at=at - timedelta(hours=3), ends_at=at - timedelta(hours=1))
    for printed in (
        administered("get", "silences", "-o", "yaml"),
        administered("get", "silence", "move", "-o", "yaml"),
    ):
        again = administered("apply", "-f", "-", text=printed.output)
        assert (again.exit_code, again.output) == (0, "Silence/move unchanged\n"), again
        assert administered("diff", "-f", "-", "--exit-code", text=printed.output).exit_code == 0
    changed = apply(ends_at=at - timedelta(hours=1), reason="another reason")
    assert (changed.exit_code, "has expired and cannot be changed" in changed.errors) == (1, True)
    # A document with a later end creates another one; the record stays.
    assert apply(*pruned, "--dry-run").output == "Silence/move created (dry run)\n"
    assert apply(*pruned).output == "Silence/move created\n"
    assert AlertSilence.objects.filter(name="move").count() == 2
    deleted = administered("delete", "silence", "move")
    assert deleted.output == "silence/move deleted\n", deleted.errors
    assert not AlertSilence.objects.filter(ends_at__gt=timezone.now()).exists()
    twice = administered("delete", "silence", "move")
    assert (twice.exit_code, "has expired" in twice.errors) == (1, True)


def test_prune_ends_the_silence_of_a_document_that_is_gone(administered: Ninefold) -> None:
    at = timezone.now()
    documents = [
        {
            "apiVersion": "ninefold/v1",
            "kind": "Silence",
            "metadata": {"name": name},
            "spec": {"matchers": ["cluster=west"], "ends_at": ends_at, "reason": "racks move"},
        }
        for name, ends_at in (("one", at + timedelta(hours=1)), ("two", at + timedelta(hours=2)))
    ]
    arguments = ("apply", "-f", "-", "--prune", "--set", "moves")
    assert administered(*arguments, text=yaml.safe_dump_all(documents)).exit_code == 0
    remaining = yaml.safe_dump(documents[0])
    planned = administered(*arguments, "--dry-run", text=remaining)
    assert "Silence/two deleted (dry run)" in planned.output
    assert AlertSilence.objects.filter(ends_at__gt=timezone.now()).count() == 2
    done = administered(*arguments, text=remaining)
    assert "Silence/two deleted" in done.output, done.errors
    assert AlertSilence.objects.get(ends_at__gt=timezone.now()).name == "one"
    # One that expired by itself is not deleted.
    AlertSilence.objects.update(began_at=at - timedelta(hours=3), ends_at=at - timedelta(hours=1))
    documents[1]["metadata"] = {"name": "three"}
    last = administered(*arguments, text=yaml.safe_dump(documents[1]))
    assert (last.exit_code, last.output) == (0, "Silence/three created\n"), last.errors


def test_a_reference_means_an_object_of_the_documents_team(
    signed_in: Ninefold, company: Company
) -> None:
    theirs = Team.objects.create(name="Depots", slug="depots")
    for team in (theirs, company.team):
        Membership.objects.get_or_create(user=company.engineer, team=team, role=TeamRole.ENGINEER)
        factories.dataset_version(actor=company.engineer, team=team, name="tickets")
    job: dict[str, Any] = {
        "apiVersion": "ninefold/v1",
        "kind": "Job",
        "metadata": {"name": "tune tickets", "team": "addresses"},
        "spec": {
            "kind": "finetune",
            "model_version": "tiny",
            "dataset_version": "tickets@1",
            "output_name": "routed",
        },
    }
    applied = signed_in("apply", "-f", "-", text=yaml.safe_dump(job))
    assert applied.exit_code == 0, applied.errors
    submitted = Job.objects.get(name="tune tickets")
    assert submitted.dataset_version is not None
    assert submitted.dataset_version.dataset.team == company.team

    job["spec"]["dataset_version"] = "depots/tickets@1"
    other = signed_in("apply", "-f", "-", text=yaml.safe_dump(job))
    assert (other.exit_code, "dataset_version is" in other.errors) == (1, True), other
    del job["metadata"]["team"]
    job["metadata"]["name"], job["spec"]["dataset_version"] = "another", "tickets@1"
    unclear = signed_in("apply", "-f", "-", text=yaml.safe_dump(job))
    assert "'tickets@1' is ambiguous: Addresses, Depots have one" in unclear.errors


def test_a_changed_document_changes_the_object(
    administered: Ninefold, company: Company, folder: Path
) -> None:
    created = administered("apply", "-f", str(folder))
    assert created.exit_code == 0, created.errors
    file = folder / "company.yaml"
    text = file.read_text()
    for before, after in (
        ("title: Maps", "title: Map data"),
        ("roles: [engineer, viewer]}, {user: otto, roles: [administrator]}", "roles: [engineer]}"),
        ("every: 60", "every: 90"),
        ("severity=critical]", "severity=critical, vendor=huawei]"),
        ("weight: 9", "weight: 3"),
        ("per_hour: 26.5", "per_hour: 30"),
        ("keep_versions: 5", "keep_versions: 6"),
    ):
        assert before in text
        text = text.replace(before, after)
    file.write_text(text)
    with (folder / "streets.jsonl").open("a") as rows:
        rows.write('{"prompt": "new?", "response": "new"}\n')

    shown = administered("diff", "-f", str(folder), "--exit-code")
    assert shown.exit_code == 1
    assert "+ file: streets.jsonl, 21 examples" in shown.output
    changed = administered("apply", "-f", str(folder))
    configured = [line for line in changed.output.splitlines() if line.endswith(" configured")]
    assert [line.split("/")[0] for line in configured] == [
        "Team", "MetricSource", "AlertRoute", "RetentionRules", "CardRate", "Dataset", "Route",
    ], changed  # fmt: skip
    members = yaml.safe_load(administered("get", "team", "maps", "-o", "yaml").output)
    assert members["spec"] == {
        "title": "Map data",
        "members": [{"user": "mei", "roles": ["engineer"]}],
    }
    assert AlertRoute.objects.get().matchers == ["severity=critical", "vendor=huawei"]
    assert set(
        RouteBackend.objects.filter(route__name="parcels").values_list("weight", flat=True)
    ) == {1, 3}
    assert AlertReceiver.objects.get().active is False


SCRIPT = """
apiVersion: ninefold/v1
kind: Job
metadata: {name: train, team: addresses}
spec: {kind: script, code: ./project, cards: 1, spec: {argv: [python, train.py]}}
"""


def test_a_job_uploads_the_folder_of_its_document_once(
    signed_in: Ninefold, live_server: LiveServer, company: Company, tmp_path: Path
) -> None:
    folder = tmp_path / "jobs"
    program = folder / "project"
    program.mkdir(parents=True)
    (folder / "train.yaml").write_text(SCRIPT)
    (program / "train.py").write_text("print('trained')")
    # Not documents: a folder with documents may contain the program.
    (program / "config.yaml").write_text("rate: 0.1")
    (program / "broken.json").write_text("{")
    codes = Artifact.objects.filter(kind=ArtifactKind.CODE)

    shown = signed_in("diff", "-f", str(folder))
    assert "+ code: ./project, 3 files\n" in shown.output, shown.errors
    planned = signed_in("apply", "-f", str(folder), "--dry-run")
    assert planned.output == "Job/train created (dry run)\n", planned.errors
    assert (codes.count(), Job.objects.count()) == (0, 0)

    created = signed_in("apply", "-f", str(folder / "train.yaml"))
    assert created.output == "Job/train created\n", created.errors
    job = Job.objects.get()
    assert job.code is not None
    packed = pack_folder(program)
    with artifact_store().open(job.code.files[0]["digest"]) as stored:
        assert stored.read() == packed.content
    again = signed_in("apply", "-f", str(folder))
    assert again.output == "Job/train unchanged\n", again.errors
    assert (codes.count(), Job.objects.count()) == (1, 1)

    # The same files, as another version of zlib compresses them.
    other = gzip.compress(gzip.decompress(packed.content), compresslevel=1, mtime=1)
    assert other != packed.content
    with Client(live_server.url, token_of(company.engineer)) as client:
        uid = client.upload("code", file=("code.tar.gz", other), fields={"team": "addresses"})[
            "uid"
        ]
    Job.objects.update(code=Artifact.objects.get(uid=uid))
    again = signed_in("apply", "-f", str(folder))
    assert again.output == "Job/train unchanged\n", again.errors

    (program / "train.py").write_text("print('better')")
    changed = signed_in("apply", "-f", str(folder))
    assert changed.exit_code == 1
    assert "give the job another name" in changed.errors
    assert (codes.count(), Job.objects.count()) == (2, 1)
    submitted = signed_in("job", "submit", "-f", str(folder))
    assert submitted.exit_code == 0, submitted.errors
    assert (codes.count(), Job.objects.count()) == (3, 2)


def test_what_is_wrong_with_the_folder_of_a_job_is_said_before_an_upload(
    signed_in: Ninefold, company: Company, tmp_path: Path
) -> None:
    file = tmp_path / "train.yaml"
    (tmp_path / "empty").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").touch()
    faulty = []
    for document, said in (
        (SCRIPT.replace("./project", "missing"), f"{tmp_path / 'missing'} is not a folder"),
        (SCRIPT.replace("./project", "./empty"), f"{tmp_path / 'empty'} has no file to upload"),
        (SCRIPT.replace("cards: 1", "cards: 1, chips: [tpu]"), "tpu"),
    ):
        file.write_text(document)
        for command in (("diff",), ("apply", "--dry-run"), ("apply",)):
            done = signed_in(*command, "-f", str(file))
            if done.exit_code != 1 or said not in done.errors.replace("\n", " "):
                faulty.append((command, document, done))
    assert not faulty
    assert not Artifact.objects.filter(kind=ArtifactKind.CODE).exists()
    # A file that is no document is refused elsewhere.
    (tmp_path / "config.yaml").write_text("rate: 0.1")
    assert "unknown field rate" in signed_in("diff", "-f", str(tmp_path)).errors


def test_prune_deletes_only_what_the_set_applied_before(
    administered: Ninefold, company: Company, folder: Path
) -> None:
    Queue.objects.create(name="by-hand")
    names = ("apply", "-f", str(folder), "--prune", "--set", "shop")
    assert administered(*names[:4]).exit_code == 2
    assert administered(*names).exit_code == 0
    file = folder / "company.yaml"
    documents = file.read_text().split("---")
    remaining = [
        one
        for one in documents
        if not any(
            f"kind: {kind}\n" in one for kind in ("Queue", "AlertRoute", "Deployment", "Route")
        )
    ]
    file.write_text("---".join(remaining))

    shown = administered("diff", *names[1:], "--exit-code")
    assert shown.exit_code == 1
    assert "Queue/vision (deleted)" in shown.output
    # The route has a backend of each deployment.
    assert "Deployment/parcels (deleted)" not in shown.output
    planned = administered(*names, "--dry-run")
    assert planned.exit_code == 1
    assert "Queue/vision deleted (dry run)" in planned.output
    assert "Deployment/parcels deleted (dry run)" not in planned.output
    assert "Deployment/parcels: Error: " in planned.errors
    refused = administered(*names)
    assert refused.exit_code == 1
    assert "Confirm with --yes" in refused.errors
    assert Queue.objects.filter(name="vision").exists()

    # What its processes would do is not part of this test.
    Deployment.objects.update(state=DeploymentState.STOPPED)
    RouteBackend.objects.exclude(route__name="parcels-next").filter(
        backend__revision__deployment__name="parcels-next"
    ).delete()
    pruned = administered(*names, "--yes")
    assert pruned.exit_code == 0, pruned
    assert "Route/parcels is no longer part of the set and stays" in pruned.output
    lines = pruned.output.splitlines()
    deleted = [line.removesuffix(" deleted") for line in lines[-4:]]
    assert deleted == [
        "Deployment/parcels-next",
        "Deployment/parcels",
        "AlertRoute/critical",
        "Queue/vision",
    ]
    assert [f"{one} will be deleted" for one in deleted] == lines[-8:-4]
    # A queue with claims of the past is retired, which hides it.
    queues = administered("get", "queues", "-o", "name").output.splitlines()
    assert sorted(queues) == ["queue/by-hand", "queue/default"]
    again = administered(*names)
    assert (again.exit_code, "deleted" in again.output) == (0, False), again

    # The merge that removed them is reverted.
    file.write_text("---".join(documents))
    uid = Queue.objects.get(name="vision").uid
    for said in ("created", "unchanged"):
        reverted = administered(*names)
        assert reverted.exit_code == 0, reverted
        assert f"Queue/vision {said}" in reverted.output.splitlines()
    assert administered("diff", "-f", str(file), "--exit-code").exit_code == 0
    queue = Queue.objects.get(uid=uid)
    assert (queue.name, queue.weight, queue.retired_at) == ("vision", 2, None)
    assert ApplySet.objects.get().objects_of_set.filter(kind="Queue", object_uid=uid).exists()
    assert {one.kind for one in ApplySet.objects.get().objects_of_set.all()} >= {"Team", "Job"}


PRUNED = """
kind: Queue
metadata: {name: above}
spec: {entitlements: []}
---
kind: Queue
metadata: {name: below}
spec: {parent: above, entitlements: []}
---
kind: PriorityClass
metadata: {name: hotfix}
spec: {value: 17}
---
kind: PriorityClass
metadata: {name: last}
spec: {value: -90}
"""


def test_a_dry_run_of_a_prune_has_the_refusals_of_the_server(
    administered: Ninefold, company: Company
) -> None:
    names = ("apply", "-f", "-", "--prune", "--set", "shop")
    documents = _with_versions(PRUNED)
    first = administered(*names, text=documents)
    assert first.exit_code == 0, first.errors
    used = company.submit("urgent")
    Job.objects.filter(pk=used.pk).update(priority=17)
    Claim.objects.update(priority=17)
    last = documents.split("---")[3]

    planned = administered(*names, "--dry-run", text=last)
    assert planned.exit_code == 1, planned
    assert "PriorityClass/hotfix: Error: " in planned.errors
    assert "PriorityClass/hotfix deleted" not in planned.output
    # The child is deleted before it, which the server does not know.
    assert "Queue/below deleted (dry run)\n" in planned.output
    assert "Queue/above deleted (dry run)\n" in planned.output
    assert "Queue/above: Warning: " in planned.errors
    assert Queue.objects.filter(name__in=("above", "below")).count() == 2
    assert "PriorityClass/hotfix: Error: " in administered("diff", *names[1:], text=last).errors

    Claim.objects.update(priority=0)
    Job.objects.update(priority=0)
    assert administered(*names, "--dry-run", text=last).exit_code == 0
    done = administered(*names, text=last)
    assert done.exit_code == 0, done.errors
    assert "Queue/above deleted\n" in done.output
    refused = administered("delete", "priority-class", "normal", "--dry-run")
    assert refused.exit_code == 1
    deleted = administered("delete", "priority-class", "last", "--dry-run")
    assert deleted.output == "priority-class/last deleted (dry run)\n", deleted.errors
    assert PriorityClass.objects.filter(name="last").exists()


def test_a_set_is_kept_from_other_sets_other_teams_and_concurrent_changes(
    administered: Ninefold, signed_in: Ninefold, company: Company, live_server: LiveServer
) -> None:
    document = yaml.safe_dump(
        {
            "apiVersion": "ninefold/v1",
            "kind": "Deployment",
            "metadata": {"name": "parcels"},
            "spec": {"model_version": "tiny"},
        }
    )
    assert signed_in("apply", "-f", "-", "--set", "shop", text=document).exit_code == 0
    taken = signed_in("apply", "-f", "-", "--set", "other", text=document)
    assert taken.exit_code == 1
    assert "Deployment parcels belongs to the apply set shop" in taken.errors

    signed_in(
        "--context",
        "stranger",
        "login",
        live_server.url,
        "--token",
        "-",
        text=token_of(company.stranger),
    )
    assert signed_in("get", "apply-sets").output == ""
    other = signed_in("apply", "-f", "-", "--set", "shop", "--team", "addresses", text=document)
    assert "no team 'addresses' is visible to you" in other.errors


def test_a_changed_priority_class_or_shared_output_of_a_job_is_seen(
    administered: Ninefold, company: Company
) -> None:
    for spec in (
        {"priority_class": "low", "output_shared": True},
        {"priority": -11, "output_shared": False},
    ):
        document: dict[str, Any] = {
            "apiVersion": "ninefold/v1",
            "kind": "Job",
            "metadata": {"name": f"tune {spec['output_shared']}", "team": "addresses"},
            "spec": {
                "kind": "finetune",
                "model_version": "tiny",
                "dataset_version": "addresses",
                "output_name": "parser",
                **spec,
            },
        }
        name = f"Job/{document['metadata']['name']}"
        first = administered("apply", "-f", "-", text=yaml.safe_dump(document))
        assert first.output == f"{name} created\n", first.errors
        printed = administered("get", "job", document["metadata"]["name"], "-o", "yaml").output
        shown = yaml.safe_load(printed)["spec"]
        assert {field: shown[field] for field in ("priority", "priority_class", "output_shared")
                if field in shown} == spec  # fmt: skip
        again = administered("apply", "-f", "-", text=printed)
        assert again.output == f"{name} unchanged\n", again.errors
        document["spec"]["output_shared"] = not spec["output_shared"]
        shared = administered("apply", "-f", "-", text=yaml.safe_dump(document))
        assert "output_shared is" in shared.errors
        document["spec"] |= {"output_shared": spec["output_shared"], "priority_class": "high"}
        document["spec"].pop("priority", None)
        raised = administered("diff", "-f", "-", text=yaml.safe_dump(document))
        assert "priority_class is" in raised.errors, raised


def test_a_job_is_printed_with_its_cards_and_memory(signed_in: Ninefold, company: Company) -> None:
    printed: dict[str, str] = {}
    # Of a chip with 8 cards a node, so 2 replicas.
    wide_request = {"chips": ("nvidia-h800",), "cards": 16, "memory": 2**34}
    for name, request in {"wide": wide_request, "narrow": {}}.items():
        company.submit(name, **request)
        printed[name] = signed_in("get", "job", name, "-o", "yaml").output
        again = signed_in("apply", "-f", "-", text=printed[name])
        assert again.output == f"Job/{name} unchanged\n", again.errors
    wide, narrow = (yaml.safe_load(text)["spec"] for text in printed.values())
    (role,) = Job.objects.get(name="wide").shape
    assert (role["replicas"], role["cards"]) == (2, 8)
    assert (wide["cards"], wide["memory"]) == (16, 2**34)
    assert (narrow["cards"], "memory" in narrow) == (1, False)
    unlimited = printed["narrow"] + "  memory: 0\n"
    assert signed_in("apply", "-f", "-", text=unlimited).output == "Job/narrow unchanged\n"
    for before, after in (("cards: 16", "cards: 8"), (f"memory: {2**34}", "memory: 1")):
        changed = signed_in("apply", "-f", "-", text=printed["wide"].replace(before, after))
        field, _, value = after.partition(": ")
        assert (changed.exit_code, f"cannot be changed to {value}" in changed.errors) == (
            1,
            True,
        ), field

    # A job of the printed document asks for the same.
    copied = printed["wide"].replace("name: wide", "name: copy")
    assert signed_in("apply", "-f", "-", text=copied).output == "Job/copy created\n"
    assert Job.objects.get(name="copy").shape == Job.objects.get(name="wide").shape


def test_an_empty_list_of_documents_is_applied_without_an_error(
    signed_in: Ninefold, company: Company, tmp_path: Path
) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    empty = folder / "empty.yaml"
    empty.touch()
    printed = signed_in("get", "webhooks", "-o", "yaml")
    assert (printed.exit_code, printed.output) == (0, "")
    for command in (("apply",), ("apply", "--dry-run"), ("diff", "--exit-code")):
        for file, source in (("-", "standard input"), (str(empty), str(empty))):
            done = signed_in(*command, "-f", file, text=printed.output)
            assert (done.exit_code, done.output) == (0, ""), done
            assert done.errors == f"{source} contains no document; nothing to apply.\n"

    refused = {
        (
            "apply",
            "-f",
            "-",
            "--prune",
            "--set",
            "s",
        ): "--prune would delete all objects of the set",
        ("diff", "-f", "-", "--prune", "--set", "s"): "--prune would delete all objects of the set",
        ("apply", "-f", str(folder)): f"{folder} contains no document",
        ("apply", "-f", "missing.yaml"): "there is no file or folder 'missing.yaml'",
        ("job", "submit", "-f", str(empty)): "there is no job to submit",
    }
    for arguments, said in refused.items():
        done = signed_in(*arguments)
        assert (done.exit_code, said in done.errors) == (1, True), done


def test_the_documents_of_the_pages_pass_a_dry_run(
    administered: Ninefold, company: Company, hub: LocalHub, tmp_path: Path
) -> None:
    """In the folders and with the models that the pages take for granted."""
    hub.repositories["Qwen/Qwen3-0.6B"] = model_contents()
    Team.objects.create(name="Default", slug="default")
    maps = Team.objects.create(name="Maps", slug="maps")
    with transaction.atomic():
        for name, team in (("ninefold-tiny-qwen2", company.team), ("address-parser", maps)):
            factories.model_version(actor=company.engineer, team=team, name=name)
    ModelVersion.objects.filter(line__name="address-parser").update(number=2)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").touch()
    (tmp_path / "addresses.jsonl").write_text('{"prompt": "1?", "response": "1"}\n' * 20)
    before = (Job.objects.count(), Deployment.objects.count(), Queue.objects.count())

    faulty = {}
    for where, text in documents_of_pages().items():
        documents = list(yaml.safe_load_all(text))
        for one in documents:
            # An administrator is a member of several teams, the reader of one.
            if KINDS[one["kind"]].has_team:
                one["metadata"].setdefault("team", "addresses")
        file = tmp_path / "page.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        done = administered("apply", "-f", str(file), "--dry-run")
        if done.exit_code or done.errors:
            faulty[where] = done
    assert not faulty
    assert before == (Job.objects.count(), Deployment.objects.count(), Queue.objects.count())


def test_the_commands_of_gitops_apply_its_documents_and_find_a_difference(
    administered: Ninefold, company: Company
) -> None:
    Team.objects.create(name="Default", slug="default")
    folder, faulty = GITOPS / "company", {}
    for file in CI_FILES:
        found = re.findall(r"^ +(?:- run:|-) ninefold (.*)$", file.read_text(), re.MULTILINE)
        diff, apply, drift = ([str(folder) if one == "company/" else one for one in each.split()]
                              for each in found)  # fmt: skip
        outcomes = [administered(*command) for command in (diff, drift, apply, drift)]
        queue = Queue.objects.get(name="vision")
        if [one.exit_code for one in outcomes] != [0, 1, 0, 0] or queue.weight != 2:
            faulty[file.name] = outcomes
        assert administered("delete", "queue", "vision", "--yes").exit_code == 0
        assert administered("delete", "pc", "hotfix", "--yes").exit_code == 0
    assert not faulty


REFUSED = """
kind: Deployment
metadata: {name: parcels, team: addresses}
spec: {model_version: tiny, replicas: 2, queue: vision, max_surge: 0, max_unavailable: 0}
---
kind: Deployment
metadata: {name: refused, team: addresses}
spec: {model_version: tiny, replicas: 1000}
---
kind: Deployment
metadata: {name: other, team: addresses}
spec: {model_version: tiny, queue: nothing}
---
kind: Webhook
metadata: {name: build, team: addresses}
spec: {url: "http://127.0.0.1/hook", kinds: [job.failed]}
---
kind: AlertRule
metadata: {name: hot-cards}
spec: {title: Hot cards, measure: cards.temperature, op: ">", threshold: 90, severity: dreadful}
---
kind: CardRate
metadata: {name: nvidia-h800}
spec: {per_hour: -1}
---
kind: Team
metadata: {name: maps}
spec: {title: Maps, members: [{user: mei, roles: [wizard]}]}
"""


def test_a_dry_run_refuses_what_apply_refuses(administered: Ninefold, company: Company) -> None:
    good = _with_versions("""
kind: Queue
metadata: {name: vision, team: addresses}
spec: {weight: 2}
---
kind: Deployment
metadata: {name: parcels, team: addresses}
spec: {model_version: tiny, replicas: 1, queue: vision}
""")
    planned = administered("apply", "-f", "-", "--dry-run", text=good)
    assert (planned.exit_code, planned.errors) == (0, "")
    assert administered("apply", "-f", "-", text=good).exit_code == 0

    documents = _with_versions(REFUSED)
    shown = administered("apply", "-f", "-", "--dry-run", text=documents)
    assert (shown.exit_code, shown.output) == (1, "")
    assert not Team.objects.filter(slug="maps").exists()
    assert "max_unavailable" in shown.errors
    assert "replicas: Ensure this value is less than or equal to" in shown.errors
    assert 'severity: "dreadful" is not a valid choice' in shown.errors
    real = administered("apply", "-f", "-", text=documents)
    assert (real.exit_code, real.errors) == (1, shown.errors)
    assert Deployment.objects.get().replica_count == 1


def test_a_dry_run_of_queues_that_only_fit_together_warns(
    administered: Ninefold, company: Company
) -> None:
    def tree(cards: int) -> str:
        return _with_versions(f"""
kind: Queue
metadata: {{name: upper}}
spec: {{entitlements: [{{chip: cpu, guaranteed: {cards}}}]}}
---
kind: Queue
metadata: {{name: lower}}
spec: {{parent: upper, entitlements: [{{chip: cpu, guaranteed: {cards}}}]}}
""")

    assert administered("apply", "-f", "-", text=tree(1)).exit_code == 0
    planned = administered("diff", "-f", "-", text=tree(2))
    assert planned.exit_code == 0, planned.errors
    assert "Queue/lower: Warning:" in planned.errors
    lower = "---".join(tree(2).split("---")[1:])
    alone = administered("diff", "-f", "-", text=lower)
    assert (alone.exit_code, "would be refused" in alone.errors) == (1, True)
    assert administered("apply", "-f", "-", text=tree(2)).exit_code == 0


def test_the_last_administrator_of_a_team_hands_over(signed_in: Ninefold, company: Company) -> None:
    Membership.objects.filter(team=company.team).delete()
    for user, role in (
        (company.engineer, TeamRole.ADMINISTRATOR),
        (company.stranger, TeamRole.ENGINEER),
    ):
        Membership.objects.create(user=user, team=company.team, role=role)

    def team(*members: dict[str, Any]) -> str:
        return yaml.safe_dump(
            {
                "apiVersion": "ninefold/v1",
                "kind": "Team",
                "metadata": {"name": "addresses"},
                "spec": {"members": list(members)},
            }
        )

    no_administrator = team(
        {"user": "mei", "roles": ["engineer"]}, {"user": "otto", "roles": ["engineer"]}
    )
    refused = signed_in("apply", "-f", "-", "--dry-run", text=no_administrator)
    assert (refused.exit_code, "membership-refused" in refused.errors) == (1, True), refused
    swapped = team(
        {"user": "mei", "roles": ["engineer"]}, {"user": "otto", "roles": ["administrator"]}
    )
    planned = signed_in("apply", "-f", "-", "--dry-run", text=swapped)
    assert (planned.exit_code, planned.errors) == (0, "")
    assert company.engineer.memberships.get().role == TeamRole.ADMINISTRATOR
    applied = signed_in("apply", "-f", "-", text=swapped)
    assert (applied.exit_code, applied.errors) == (0, "")
    assert company.stranger.memberships.get(team=company.team).role == TeamRole.ADMINISTRATOR
