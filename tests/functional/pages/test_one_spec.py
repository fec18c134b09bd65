"""One spec on any chip: what is greyed out, what is left to us, and what runs side by side."""

from __future__ import annotations

import json
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Membership
from apps.fleet import services as fleet
from apps.jobs.models import Job
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from controlplane.ports.clusters import ObservedCard, ObservedNode
from tests import factories
from tests.functional.sample_rows import EmptyCompany, FilledCompany

HTMX = {"HX-Request": "true"}
FORM = "/jobs/new/finetune"


@pytest.fixture
def finetune(empty: EmptyCompany) -> dict[str, str]:
    """A form of which nothing is wrong."""
    model = factories.model_version(actor=empty.user, team=empty.team)
    dataset = factories.dataset_version(actor=empty.user, team=empty.team, name="lessons")
    return {
        "team": empty.team.uid,
        "model_version": model.uid,
        "dataset_version": dataset.uid,
        "output_name": "addresses",
        "chip": "any",
        "cards": "1",
    }


@pytest.fixture
def accelerators(empty: EmptyCompany) -> None:
    """The fleet has eight GPUs and eight NPUs."""
    cluster = fleet.cluster_ensure(name="racks", kind="fake")
    nodes = [
        ObservedNode(
            name=chip,
            cards=tuple(
                ObservedCard(index=index, chip=chip, memory=Bytes(64 * GIB)) for index in range(8)
            ),
            capacity=Resources(cpu=Millicpu(96_000), memory=Bytes(768 * GIB)),
        )
        for chip in ("nvidia-h800", "ascend-910b3")
    ]
    fleet.inventory_record(cluster=cluster, nodes=nodes, isolation="", at=timezone.now())


def offered(browser: Client, form: dict[str, str]) -> dict[str, list[dict[str, object]]]:
    """What can be chosen, as the live check says it."""
    text = browser.post(f"{FORM}/check", form, headers=HTMX).text
    data = text.split('data-offered="')[1].split('"')[0]
    found: dict[str, list[dict[str, object]]] = json.loads(unescape(data))
    return found


def choice(options: list[dict[str, object]], value: str) -> dict[str, object]:
    return next(option for option in options if option["value"] == value)


def test_every_field_of_the_table_can_be_set(browser: Client, empty: EmptyCompany) -> None:
    text = browser.get(FORM).text
    names = ("objective", "lora_rank", "dpo_beta", "grpo_generations", "parallel_tensor")
    for name in (*names, "communication_dtype", "fused_operators", "recompute", "precision"):
        assert f'name="{name}"' in text, name


def test_what_the_engine_cannot_do_is_greyed_out_with_the_reason(
    browser: Client, empty: EmptyCompany
) -> None:
    page = browser.get(FORM).text
    assert 'value="qlora" class="form-check-input" disabled' in page or (
        'name="method" value="qlora"' in page and "not available: bitsandbytes" in page
    )
    assert "not available: this engine runs one process on one node" in page


def test_the_live_check_says_what_another_engine_can_do(
    browser: Client, finetune: dict[str, str], accelerators: None
) -> None:
    swift = {**finetune, "engine": "ms_swift", "chip": "nvidia-h800"}
    assert choice(offered(browser, swift)["method"], "qlora")["disabled"] is False
    ascend = {**finetune, "engine": "ms_swift", "chip": "ascend-910b3"}
    option = choice(offered(browser, ascend)["method"], "qlora")
    assert option["disabled"] is True
    assert "not available: bitsandbytes" in str(option["label"])
    cpu = {**finetune, "engine": "ms_swift", "chip": "cpu"}
    assert choice(offered(browser, cpu)["engine"], "llamafactory")["disabled"] is True


def test_any_chip_becomes_one_of_the_fleet_and_the_job_keeps_both(
    browser: Client, finetune: dict[str, str], accelerators: None
) -> None:
    response = browser.post(FORM, {**finetune, "engine": "llamafactory", "chip": "npu"})
    assert response.status_code == 302, response.context["form"].errors
    job = Job.objects.get()
    assert (job.asked_chips, job.chips) == (["npu"], ["ascend-910b3"])
    text = browser.get(f"/jobs/{job.uid}?tab=spec").text
    assert "requested: npu" in text


def test_a_kind_that_the_fleet_has_not_cannot_be_chosen(
    browser: Client, empty: EmptyCompany
) -> None:
    assert "the fleet has no cards of the chip group &#x27;npu&#x27;" in browser.get(FORM).text


def test_a_queue_and_a_priority_can_be_asked_for(browser: Client, finetune: dict[str, str]) -> None:
    response = browser.post(FORM, {**finetune, "chip": "cpu", "queue": "default", "priority": "-5"})
    assert response.status_code == 302, response.context["form"].errors
    assert Job.objects.get().priority == -5
    urgent = {**finetune, "chip": "cpu", "output_name": "other", "priority": "5"}
    wrong = browser.post(FORM, urgent)
    assert wrong.status_code == 422
    assert "only an administrator or a queue admin of the team" in wrong.text


def test_priorities_are_offered_by_name_and_the_urgent_ones_to_queue_admins_only(
    browser: Client, empty: EmptyCompany
) -> None:
    low = "low (-10): Workloads start last and are preempted first."
    urgent = "urgent (100): Workloads start ahead of all others in the queue."
    text = browser.get(FORM).text
    assert f'<option value="-10">{low}</option>' in text
    assert f'<option value="100" disabled>{urgent}; not available: for queue admins' in text

    membership = Membership.objects.get(user=empty.user)
    membership.role = TeamRole.QUEUE_ADMIN
    membership.save()
    assert f'<option value="100">{urgent}</option>' in browser.get(FORM).text


def test_the_rendering_of_a_job_shows_both_chips_and_no_secret(
    browser: Client, filled: FilledCompany
) -> None:
    Job.objects.filter(pk=filled.running.pk).update(engine="ms_swift")
    address = f"/jobs/{filled.running.uid}?tab=rendered&left=nvidia-h800&right=ascend-910b3"
    text = browser.get(address).text
    assert "0 fields of the spec differ." in text
    assert "<mark>CUDA_VISIBLE_DEVICES=0</mark>" in text
    assert "<mark>ASCEND_RT_VISIBLE_DEVICES=0</mark>" in text
    assert "NINEFOLD_ATTEMPT_TOKEN" not in text
    assert "&quot;learning_rate&quot;: " in text


def test_the_rendering_of_a_job_says_where_its_engine_lacks_the_chips_torch(
    browser: Client, filled: FilledCompany
) -> None:
    address = f"/jobs/{filled.running.uid}?tab=rendered&left=nvidia-h800&right=ascend-910b3"
    text = unescape(browser.get(address).text)
    assert "Ascend 910B3 requires torch_npu" in text


def test_a_form_shows_what_it_would_run_before_it_is_submitted(
    browser: Client, finetune: dict[str, str]
) -> None:
    form = {
        **finetune,
        "engine": "ms_swift",
        "chip": "nvidia-h800",
        "left": "nvidia-h800",
        "right": "ascend-910b3",
    }
    fragment = browser.post(f"{FORM}/rendered", form, headers=HTMX).text
    assert "0 fields of the spec differ." in fragment
    assert "<html" not in fragment
    page = browser.post(f"{FORM}/rendered", form)
    assert page.status_code == 200
    assert "The job was not submitted." in page.text
    assert not Job.objects.exists()


def test_a_form_that_is_not_right_yet_says_so_instead(
    browser: Client, finetune: dict[str, str]
) -> None:
    text = browser.post(f"{FORM}/rendered", {**finetune, "output_name": ""}, headers=HTMX).text
    assert "Fix the fields above" in text


def test_an_unknown_chip_in_the_address_is_another_choice(
    browser: Client, filled: FilledCompany
) -> None:
    response = browser.get(f"/jobs/{filled.running.uid}?tab=rendered&left=abacus&right=abacus")
    assert response.status_code == 200
