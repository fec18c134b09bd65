"""Documents of every kind: created by ``apply``, printed by ``get``, and unchanged when applied again."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import Membership, Team
from apps.jobs.models import Job
from apps.models.models import ModelVersion
from apps.monitoring.models import AlertReceiver, AlertRoute, AlertSilence
from apps.quotas.models import Queue
from apps.serving.models import ApiKey, Deployment, RouteBackend
from controlplane.domain.common.permissions import TeamRole
from ninefold_client.apply import KINDS
from ninefold_client.resources import RESOURCE_OF_KIND
from tests import factories
from tests.documented_examples import CI_FILES, GITOPS, documents_of_pages
from tests.functional.client.conftest import Ninefold, with_versions
from tests.hubs import LocalHub
from tests.integration.company import Company, model_contents

#: Kinds whose objects exist before, because a document does not create them or needs a real cluster for it.
EXISTING = {
    "Model": "tiny",
    "GatewayKey": "nightly",
    "PersonalToken": "walk",
    # Documents accept the slug of a team as well; what is printed has its name.
    "StorageQuota": "Addresses",
    "RetentionRules": "Addresses",
}


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
    good = with_versions("""
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

    documents = with_versions(REFUSED)
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
        return with_versions(f"""
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
