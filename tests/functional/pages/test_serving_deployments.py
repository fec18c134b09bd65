"""The list of deployments, the tabs of a deployment's page, rollback, and checks of forms."""

from __future__ import annotations

import json
import re
import secrets
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.fleet import services as fleet
from apps.fleet.models import Card, Node
from apps.models.models import ModelVersion, files_json
from apps.quotas.models import Allocation
from apps.serving.models import Backend, Deployment, Replica, Revision, WeightDownload
from apps.serving.selectors.revision_configurations import RevisionConfiguration, replica_memory
from apps.serving.services import deployments as services
from apps.serving.services.gateways import usage_batch_record
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.resources import Bytes, Millicpu, Resources, format_bytes
from controlplane.domain.serving.lifecycle import WeightDownloadState
from controlplane.ports.adapter_registry import all_chips
from controlplane.ports.clusters import ObservedCard, ObservedNode
from gateway.operations import FORMATS, RouteOperation
from tests import factories
from tests.cases import for_each_case
from tests.functional.api.callers import caller
from tests.functional.sample_rows import FilledCompany
from tests.integration.company import safetensors, stored
from tests.s3_servers import store_options

QWEN2_7B = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "max_position_embeddings": 32768,
    "vocab_size": 152064,
    "torch_dtype": "bfloat16",
}


QWEN2_72B = {
    **QWEN2_7B,
    "hidden_size": 8192,
    "intermediate_size": 29568,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
}
LLAMA_405B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 16384,
    "intermediate_size": 53248,
    "num_hidden_layers": 126,
    "num_attention_heads": 128,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
}


def give_config(version: ModelVersion, config: dict[str, Any], *, parameters: int) -> None:
    version.config, version.context_length, version.parameters = config, 8192, parameters
    version.save(update_fields=["config", "context_length", "parameters"])


def add_node(name: str, chip: str, *, cards: int = 8) -> None:
    """A cluster with one node of that chip."""
    node = ObservedNode(
        name=f"{name}-1",
        cards=tuple(ObservedCard(index=index, chip=chip) for index in range(cards)),
        capacity=Resources(cpu=Millicpu(8000), memory=Bytes(16 << 30)),
    )
    cluster = fleet.cluster_ensure(name=name, kind="fake")
    fleet.inventory_record(cluster=cluster, nodes=[node], isolation="", at=timezone.now())


def called(
    filled: FilledCompany, *, ago: timedelta, outcome: str = "ok", first: float = 200
) -> None:
    """One call to the ready deployment that long ago."""
    Deployment.objects.filter(pk=filled.ready.pk).update(
        created_at=timezone.now() - timedelta(days=40)
    )
    record = {
        "key": filled.key.uid,
        "at": (timezone.now() - ago).isoformat(),
        "route": filled.ready.name,
        "backend": "",
        "operation": "chat",
        "status": 200,
        "outcome": outcome,
        "prompt_tokens": 30,
        "completion_tokens": 12,
        "duration_ms": 900,
        "first_token_ms": first,
    }
    sequence = int(ago.total_seconds() * 1000) + len(outcome)
    usage_batch_record(gateway="g", sequence=sequence, records=[record])


def revised(filled: FilledCompany) -> Revision:
    return services.deployment_revise(
        deployment=filled.ready,
        configuration=RevisionConfiguration(model_version=filled.base, cards=2),
        actor=filled.user,
        at=timezone.now(),
    )


def part(client: Client, filled: FilledCompany, tab: str, more: str = "") -> Any:
    return client.get(f"/deployments/{filled.ready.uid}?tab={tab}{more}")


def chart(client: Client, filled: FilledCompany, name: str, window: str = "hour") -> Any:
    answer = client.get(f"/deployments/{filled.ready.uid}/charts/{name}?window={window}")
    assert answer.status_code == 200
    return answer.json()


@for_each_case(
    ("query", "names"),
    [
        ("", {"parcels", "shaky"}),
        ("text=parc", {"parcels"}),
        ("state=degraded", {"shaky"}),
        ("model=no-such-model", set()),
        ("sort=-calls", {"parcels", "shaky"}),
        ("sort=model", {"parcels", "shaky"}),
    ],
)
def test_the_list_is_narrowed_by_its_address(
    browser: Client, filled: FilledCompany, query: str, names: set[str]
) -> None:
    response = browser.get(f"/deployments?{query}")
    assert {row.name for row in response.context["table"].rows} == names


def test_the_list_counts_the_calls_of_a_day_and_comes_as_csv(
    browser: Client, filled: FilledCompany
) -> None:
    called(filled, ago=timedelta(hours=3))
    called(filled, ago=timedelta(days=3))
    rows = {row.name: row.calls for row in browser.get("/deployments").context["table"].rows}
    assert rows == {"parcels": 1, "shaky": 0}
    lines = b"".join(browser.get("/deployments?format=csv")).decode().splitlines()
    assert any(line.startswith("parcels,ready,") and ",1 of 1,1," in line for line in lines)


def test_replica_row_shows_its_cards(browser: Client, filled: FilledCompany) -> None:
    rows = browser.get(f"/deployments/{filled.ready.uid}").context["replicas"]
    (held,) = Allocation.objects.filter(claim__uid=rows[0][0].claim_uid)
    assert [lines for _replica, lines in rows] == [(f"{held.node.name} · {held.card.index}",)]


def test_the_shortest_time_with_a_call_in_it_is_shown_first(
    browser: Client, filled: FilledCompany
) -> None:
    assert "No requests" in part(browser, filled, "calls").text
    called(filled, ago=timedelta(days=3))
    assert part(browser, filled, "calls").context["window"] == "month"
    called(filled, ago=timedelta(hours=3))
    assert part(browser, filled, "calls").context["window"] == "day"
    called(filled, ago=timedelta(minutes=3))
    shown = part(browser, filled, "calls").context
    assert shown["window"] == "hour"
    assert shown["statistics"].calls == 1


@pytest.mark.parametrize(("window", "steps"), [("hour", 60), ("day", 48), ("month", 30)])
def test_a_chart_has_every_step_and_each_call_in_one(
    browser: Client, filled: FilledCompany, window: str, steps: int
) -> None:
    called(filled, ago=timedelta(minutes=1), first=100)
    called(filled, ago=timedelta(minutes=2), outcome="error", first=9000)
    answered, failed = chart(browser, filled, "calls", window)["series"]
    assert len(answered["x"]) == steps
    assert (sum(answered["y"]), sum(failed["y"])) == (1, 1)
    read, written = chart(browser, filled, "tokens", window)["series"]
    assert (sum(read["y"]), sum(written["y"])) == (60, 24)
    median = chart(browser, filled, "latency", window)["series"][0]["y"]
    assert [one for one in median if one is not None] == [0.1]


def test_charts_mark_the_creation_of_later_revisions(
    browser: Client, filled: FilledCompany
) -> None:
    called(filled, ago=timedelta(minutes=1))
    first = filled.ready.revisions.get()
    for minutes, number in ((90, 2), (20, 3), (5, 4)):
        revision = Revision.objects.get(pk=first.pk)
        revision.pk, revision.uid, revision.number = None, uuid.uuid4().hex, number
        revision.save()
        Revision.objects.filter(pk=revision.pk).update(
            created_at=timezone.now() - timedelta(minutes=minutes)
        )
    marks = chart(browser, filled, "calls")["marks"]
    assert [(mark["label"], mark["kind"]) for mark in marks] == [
        ("r3", "release"),
        ("r4", "release"),
    ]
    day = chart(browser, filled, "calls", "day")["marks"]
    assert [mark["label"] for mark in day] == ["r2", "r3", "r4"]


def test_a_chart_of_nothing_is_empty(browser: Client, filled: FilledCompany) -> None:
    assert chart(browser, filled, "calls")["series"] == []
    assert browser.get(f"/deployments/{filled.ready.uid}/charts/mood").status_code == 404


def test_calls_of_an_earlier_deployment_of_the_name_are_not_counted(
    browser: Client, filled: FilledCompany
) -> None:
    called(filled, ago=timedelta(minutes=5))
    Deployment.objects.filter(pk=filled.ready.pk).update(created_at=timezone.now())
    assert chart(browser, filled, "calls")["series"] == []


def test_revisions_say_what_changed_and_which_serves(
    browser: Client, filled: FilledCompany
) -> None:
    revised(filled)
    newer, first = part(browser, filled, "revisions").context["revisions"]
    assert {(str(one["before"]), str(one["after"])) for one in newer["changes"]} == {
        (str(filled.tuned), str(filled.base)),
        ("1", "2"),
    }
    assert first["serves"]
    assert not newer["serves"]
    assert first["changes"] == []


def test_rollback_creates_revision_with_old_configuration(
    browser: Client, filled: FilledCompany
) -> None:
    revised(filled)
    first = Revision.objects.get(deployment=filled.ready, number=1)
    services.traffic_shift(
        deployment=filled.ready,
        backend=Backend.objects.get(revision__deployment=filled.ready, revision__number=2),
    )
    browser.post(f"/deployments/{filled.ready.uid}/revisions/1/roll-back")
    newest = Revision.objects.filter(deployment=filled.ready).latest("number")
    assert newest.number == 3
    fields = ("model_version_id", "engine", "spec", "chips", "cards")
    assert [getattr(newest, name) for name in fields] == [getattr(first, name) for name in fields]
    missing = f"/deployments/{filled.ready.uid}/revisions/9/roll-back"
    assert browser.post(missing).status_code == 404


def test_viewer_sees_revisions_and_why_rollback_is_denied(
    viewer: Client, filled: FilledCompany
) -> None:
    revised(filled)
    text = part(viewer, filled, "revisions").text
    assert "is read-only" in text
    assert "/roll-back" not in text
    address = f"/deployments/{filled.ready.uid}/revisions/1/roll-back"
    assert viewer.post(address).status_code == 403


def test_events_include_deployment_and_replicas(browser: Client, filled: FilledCompany) -> None:
    events = part(browser, filled, "events").context["events"]
    assert {event["subject"] for event in events} == {"deployment", "replica"}
    times = [event["at"] for event in events]
    assert times == sorted(times, reverse=True)


def test_log_of_replica_without_file_is_stored_tail_of_crash(
    browser: Client, filled: FilledCompany
) -> None:
    crashed = Replica.objects.get(backend__revision__deployment=filled.degraded)
    address = f"/deployments/{filled.degraded.uid}"
    assert "Traceback: out of memory" in browser.get(f"{address}?tab=log").text
    assert browser.get(f"{address}/logs/{crashed.uid}?offset=0").status_code == 200
    strange = f"/deployments/{filled.ready.uid}/logs/{crashed.uid}"
    assert browser.get(strange).status_code == 404


def asked(filled: FilledCompany, **changes: str) -> dict[str, str]:
    return {
        "team": filled.team.uid,
        "model_version": filled.tuned.uid,
        "name": "fresh",
        "replicas": "2",
        "chip": "cpu",
        "cards": "1",
        **changes,
    }


def test_form_check_shows_effects_and_saves_nothing(browser: Client, filled: FilledCompany) -> None:
    text = browser.post("/deployments/check", asked(filled)).text
    assert "2 replicas of" in text
    assert "fresh" in text
    assert not Deployment.objects.filter(name="fresh").exists()


def test_the_form_names_a_free_name_for_one_that_is_taken(
    browser: Client, filled: FilledCompany
) -> None:
    text = browser.post("/deployments/check", asked(filled, name="parcels")).text
    assert "parcels-2" in text
    page = browser.get(f"/deployments/new?model={filled.tuned.uid}")
    assert f'value="{filled.tuned.line.name}"' in page.text


def test_form_check_warns_of_missing_chip(browser: Client, filled: FilledCompany) -> None:
    Card.objects.update(chip="another")
    chips = browser.get("/deployments/new").context["form"].fields["chip"].choices
    assert ("cpu", "cpu (none in the fleet)") in chips
    text = browser.post("/deployments/check", asked(filled)).text
    assert "The fleet has no" in text


def test_revision_check_uses_replica_count_of_deployment(
    browser: Client, filled: FilledCompany
) -> None:
    form = {"model_version": filled.base.uid, "chip": "cpu", "cards": "1"}
    text = browser.post(f"/deployments/{filled.ready.uid}/revise/check", form).text
    assert "with at most 1 more and 0 fewer than 1 at a time" in text


def test_fields_that_the_form_does_not_show_stay_in_the_next_revision(
    browser: Client, filled: FilledCompany
) -> None:
    newest = Revision.objects.get(deployment=filled.ready)
    Revision.objects.filter(pk=newest.pk).update(spec={**newest.spec, "model_name": "kept"})
    form = {"model_version": filled.base.uid, "chip": "cpu", "cards": "1", "queue_size": "0"}
    browser.post(f"/deployments/{filled.ready.uid}/revise", form)
    revision = Revision.objects.filter(deployment=filled.ready).latest("number")
    assert revision.spec["model_name"] == "kept"
    assert revision.spec["queue_size"] == 0


def test_form_sent_twice_creates_one_deployment(browser: Client, filled: FilledCompany) -> None:
    form = asked(filled, once="a" * 32)
    first = browser.post("/deployments/new", form)
    again = browser.post("/deployments/new", form)
    assert first["Location"] == again["Location"]
    assert Deployment.objects.filter(name="fresh").count() == 1


def test_the_form_names_the_adapters_of_the_chosen_model(
    browser: Client, filled: FilledCompany
) -> None:
    files = {
        "adapter/adapter_config.json": json.dumps({"peft_type": "LORA", "r": 8}).encode(),
        "adapter/adapter_model.safetensors": safetensors(a=(8, 4)),
    }
    artifact = filled.tuned.artifact
    assert artifact is not None
    triples = [stored(path, content) for path, content in files.items()]
    artifact.files = [*artifact.files, *files_json(triples)]
    artifact.save()
    field = f"adapter_{filled.tuned.uid}"
    page = browser.post("/deployments/fields", {"model_version": filled.base.uid, "chip": "cpu"})
    assert f'name="{field}"' in page.text
    page = browser.post("/deployments/fields", {"model_version": filled.tuned.uid, "chip": "cpu"})
    assert field not in page.text

    form = asked(filled, model_version=filled.base.uid, **{field: "parcels"})
    assert "already in use" in browser.post("/deployments/new", form).text
    form[field] = "formal"
    assert "1 LoRA adapter beside the model: formal" in (
        browser.post("/deployments/check", form).text
    )
    address = browser.post("/deployments/new", form)["Location"]
    page = browser.get(address)
    assert "<code>formal</code>" in page.text
    assert "rank 8" in page.text
    # The next revision keeps it unless its name is removed.
    assert 'value="formal"' in browser.get(f"{address}/revise").text


def test_the_form_estimates_the_memory_of_a_replica(browser: Client, filled: FilledCompany) -> None:
    """With the calculator's figures: of the chosen model, chip, cards and fields of the engine."""
    version = filled.tuned
    version.config, version.context_length = QWEN2_7B, 32_768
    version.save(update_fields=["config", "context_length"])

    def shown(**changes: str) -> Any:
        form = asked(filled, chip="nvidia-h800", engine="vllm", **changes)
        return browser.post("/deployments/check", form)

    found = shown()
    estimate = found.context["sized"].estimate
    assert "Fits on 1 × NVIDIA H800" in found.text
    assert "for 1 concurrent request of 32,768 tokens" in found.text
    parts = {part.name: part.bytes for part in estimate.parts}
    assert parts["cache"] == 32_768 * 57_344
    chosen = shown(context_length="4096", concurrency="16", kv_precision="fp8").context["sized"]
    cache = {part.name: part.bytes for part in chosen.estimate.parts}["cache"]
    assert cache == 16 * 4096 * 57_344 / 2
    assert "Does not fit" in shown(concurrency="4096").text
    chinese = browser.post(
        "/deployments/check",
        asked(filled, chip="nvidia-h800", engine="vllm"),
        headers={"Accept-Language": "zh-CN"},
    )
    assert "显存需求" in chinese.text
    assert "个并发请求" in chinese.text


def test_one_click_deploys_on_the_fewest_cards_of_the_fleet_that_hold_the_model(
    browser: Client, filled: FilledCompany
) -> None:
    """72B parameters on four H800, not on the processor that the fleet has too, and not on eight L4."""
    version = filled.tuned
    give_config(version, QWEN2_72B, parameters=72_706_203_648)

    def deployed() -> Revision:
        address = browser.post(reverse("deployment-quick", args=[version.uid]))["Location"]
        uid = address.rstrip("/").rpartition("/")[2]
        return Deployment.objects.get(uid=uid).revisions.get()

    add_node("east", "nvidia-h800")
    add_node("west", "nvidia-l4")
    revision = deployed()
    assert (revision.chips, revision.cards) == (["nvidia-h800"], 4)
    assert revision.engine
    # The stored spec has every default, and all cards share each layer.
    assert revision.spec["parallel"] == {"tensor": None, "pipeline": 1, "data": 1, "expert": "off"}
    assert replica_memory(RevisionConfiguration.of(revision)).estimate.plan.tensor == 4

    def created(**given: Any) -> tuple[list[str], int]:
        body = {"name": f"by-rest-{secrets.token_hex(4)}", "team": filled.team.slug}
        response = caller(filled.user).post(
            "/api/v1/deployments", {**body, "model_version": version.uid, **given}
        )
        assert response.status_code == 201, response.content
        (newest,) = response.json()["revisions"]
        return newest["chips"], newest["cards"]

    assert created() == (["nvidia-h800"], 4)
    assert created(cards=8) == (["nvidia-h800"], 8)
    assert created(chips=["nvidia-h800", "nvidia-l4"]) == (["nvidia-h800", "nvidia-l4"], 4)
    assert created(chips=["cpu"]) == (["cpu"], 1)
    # Of the engine of the chip that holds the model, not of the processor's, which has no such field.
    response = caller(filled.user).post(
        "/api/v1/deployments",
        {
            "name": "by-rest",
            "team": filled.team.slug,
            "model_version": version.uid,
            "spec": {"chunked_prefill": "maybe"},
        },
    )
    assert response.status_code == 422
    detail = response.json()["detail"]
    assert detail.startswith("chunked_prefill: ")
    assert "unknown" not in detail


def test_a_model_that_no_node_holds_is_refused_with_the_memory_that_it_needs(
    browser: Client, filled: FilledCompany
) -> None:
    version = filled.tuned
    count = Deployment.objects.count()

    def refused(**given: Any) -> str:
        body = {"name": "large", "team": filled.team.slug, "model_version": version.uid, **given}
        response = caller(filled.user).post("/api/v1/deployments", body)
        assert response.status_code == 422, response.content
        return str(response.json()["detail"])

    # The processor of the fleet: 16 GiB, of which an engine may use nine tenths.
    give_config(version, QWEN2_72B, parameters=72_706_203_648)
    detail = refused()
    assert "on 1 × CPU" in detail
    assert "where 14.4 GiB is available; quantize the model" in detail
    page = browser.post(reverse("deployment-quick", args=[version.uid]), follow=True)
    assert "where 14.4 GiB is available" in page.text
    page = browser.post(
        reverse("deployment-quick", args=[version.uid]),
        follow=True,
        headers={"Accept-Language": "zh-CN"},
    )
    assert "而可用的只有 14.4 GiB" in page.text
    assert Deployment.objects.count() == count

    # A processor with more memory is no alternative to an accelerator.
    Node.objects.update(memory=4 << 40)
    add_node("east", "nvidia-h800")
    give_config(version, LLAMA_405B, parameters=405_853_388_800)
    assert re.search(r"requires 7\d\d GiB on 8 × NVIDIA H800", detail := refused()), detail
    usable = round(all_chips()["nvidia-h800"].memory * 0.9) * 8
    assert f"where {format_bytes(usable)} is available; quantize the model" in detail
    # A replica does not span clusters.
    add_node("south", "nvidia-h800")
    assert "on 8 × NVIDIA H800" in refused()
    assert "on 4 × NVIDIA H800" in refused(cards=4)
    assert "on 8 × NVIDIA L4" in refused(chips=["nvidia-l4"])

    def created(**given: Any) -> tuple[list[str], int]:
        body = {"name": f"by-rest-{secrets.token_hex(4)}", "team": filled.team.slug}
        response = caller(filled.user).post(
            "/api/v1/deployments", {**body, "model_version": version.uid, **given}
        )
        assert response.status_code == 201, response.content
        (newest,) = response.json()["revisions"]
        return newest["chips"], newest["cards"]

    # What is named is not refused.
    assert created(chips=["nvidia-h800"], cards=8) == (["nvidia-h800"], 8)
    assert created(chips=["cpu"]) == (["cpu"], 1)
    # A node of sixteen cards holds what a node of eight of the same chip does not.
    add_node("north", "ascend-910c")
    assert "on 8 × NVIDIA H800" in refused()
    add_node("north", "ascend-910c", cards=16)
    assert created() == (["ascend-910c"], 16)


def test_the_processor_gets_a_model_that_it_holds_if_no_accelerator_serves(
    browser: Client, filled: FilledCompany
) -> None:
    version = filled.tuned
    give_config(version, QWEN2_7B, parameters=7_615_616_512)
    Node.objects.update(memory=64 << 30)
    address = browser.post(reverse("deployment-quick", args=[version.uid]))["Location"]
    uid = address.rstrip("/").rpartition("/")[2]
    assert Deployment.objects.get(uid=uid).revisions.get().chips == ["cpu"]
    # Its cluster does not report how much memory it has.
    Node.objects.update(memory=0)
    address = browser.post(reverse("deployment-quick", args=[version.uid]))["Location"]
    assert address.startswith("/deployments/")


def test_the_form_says_why_a_model_has_no_memory_estimate(
    browser: Client, filled: FilledCompany
) -> None:
    version = filled.tuned
    version.config = {"architectures": version.config["architectures"]} if version.config else {}
    version.save(update_fields=["config"])
    found = browser.post("/deployments/check", asked(filled, chip="nvidia-h800"))
    assert "No memory estimate: " in found.text
    assert "sized" not in found.context


def test_each_operation_has_an_example_with_the_path_of_the_gateway() -> None:
    examples = {
        operation: render_to_string(
            "serving/client_examples.html",
            {"operation": operation.value, "name": "assistant", "gateway_url": "https://gate"},
        )
        for operation in FORMATS
    }
    shown = {RouteOperation.CHAT, RouteOperation.EMBEDDINGS, RouteOperation.RERANK}
    shown |= {RouteOperation.IMAGES, RouteOperation.TRANSCRIPTIONS, RouteOperation.VIDEOS}
    shown |= {RouteOperation.SPEECH}
    for operation in shown:
        assert f"https://gate{FORMATS[operation].path} \\" in examples[operation], operation
    assert "client.audio.speech.create(" in examples[RouteOperation.SPEECH]
    assert "chat.completions" not in examples[RouteOperation.SPEECH]


def weights_page(filled: FilledCompany) -> str:
    return reverse("model-version-weights", args=[filled.tuned.uid])


def test_weights_are_pre_downloaded_from_the_page_of_a_model_version(
    browser: Client, filled: FilledCompany, settings: Any, tmp_path: Path
) -> None:
    page = weights_page(filled)
    assert page in browser.get(reverse("model-version", args=[filled.tuned.uid])).text
    assert page in browser.get(reverse("deployment", args=[filled.ready.uid])).text
    assert "No downloads" in browser.get(page).text
    asked = {"team": filled.team.uid, "cluster": filled.cluster.uid, "chip": "cpu"}
    refused = browser.post(page, asked)
    assert refused.status_code == 422
    assert "read the artifact store directly" in refused.text
    # Nothing is asked of the store before the download begins.
    settings.NINEFOLD_S3 = store_options("http://127.0.0.1:9", "bucket")
    settings.NINEFOLD_ARTIFACTS = "s3"
    settings.NINEFOLD_HOME = tmp_path / "home"
    assert "must have the form" in browser.post(page, {**asked, "labels": "pool"}).text
    unmatched = browser.post(page, {**asked, "labels": "pool=inference"})
    assert "no node of here" in unmatched.text
    shown = browser.post(page, {**asked, "nodes": "here-1, "}, follow=True)
    assert "Downloading the weights to 1 nodes." in shown.text
    row = WeightDownload.objects.get()
    assert (row.node.name, row.created_by) == ("here-1", filled.user)
    assert "Cancel download" in shown.text
    assert "every 2s" in shown.text
    weights = reverse("weight-download-delete", args=[row.uid])
    assert "being cancelled" in browser.post(weights, follow=True).text


def test_the_state_of_weights_is_shown_by_version_and_by_node(
    browser: Client, outsider: Client, filled: FilledCompany
) -> None:
    row = factories.weight_download(
        actor=filled.user,
        team=filled.team,
        model=filled.tuned,
        cluster=filled.cluster,
        state=WeightDownloadState.FAILED,
        message=Reason("attempt.exit.disk_full", "the disk is full"),
        ended_at=timezone.now(),
    )
    page = browser.get(weights_page(filled))
    assert "the disk is full" in page.text
    assert "every 2s" not in page.text
    node = reverse("node", args=[filled.cluster.uid, row.node.name])
    assert "Pre-downloaded weights" in browser.get(node).text
    assert "Pre-downloaded weights" not in outsider.get(node).text
    chinese = browser.get(weights_page(filled), headers={"accept-language": "zh-hans"}).text
    assert "预下载权重" in chinese
    assert "磁盘" in chinese
    removed = browser.post(reverse("weight-download-delete", args=[row.uid]), follow=True)
    assert "Removed from the list." in removed.text
    assert not WeightDownload.objects.exists()
