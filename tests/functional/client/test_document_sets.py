"""Pruning of documents: what a set applied before and no longer has is deleted."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import yaml
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from apps.accounts.models import ApplySet
from apps.jobs.models import Job
from apps.monitoring.models import AlertSilence
from apps.quotas.models import Claim, PriorityClass, Queue
from apps.serving.models import Deployment, RouteBackend
from controlplane.domain.serving.lifecycle import DeploymentState
from tests.functional.client.conftest import Ninefold, token_of, with_versions
from tests.integration.company import Company


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
    documents = with_versions(PRUNED)
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
