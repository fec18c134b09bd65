"""The guided fine-tune: what it will take is said before the button is pressed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Membership
from apps.jobs import services
from apps.jobs.models import Attempt, Job
from apps.jobs.selectors.finetune_estimates import FinetuneEstimate
from apps.models.models import ModelVersion
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.common.resources import Bytes
from controlplane.domain.jobs.lifecycle import AttemptState
from controlplane.domain.sizing import PROCESS_BYTES
from controlplane.ports import adapter_registry
from tests import factories
from tests.functional.pages.reading import CHINESE
from tests.functional.sample_rows import EmptyCompany, FilledCompany

HTMX = {"HX-Request": "true"}


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
        "method": "full",
        "chip": "cpu",
        "cards": "1",
    }


def estimate(client: Client, form: dict[str, str]) -> FinetuneEstimate:
    response = client.post("/jobs/new/finetune/check", form, headers=HTMX)
    found = response.context["estimate"]
    assert isinstance(found, FinetuneEstimate)
    return found


def ran(job: Job, *, seconds: float, steps: int = 10) -> None:
    """As if the job's only attempt had trained so long, after and before ten seconds of other things."""
    attempt = job.attempts.get()
    at = timezone.now()
    began = at - timedelta(seconds=seconds + 20)
    for step, moment in ((1, 0.0), (steps, seconds * (steps - 1) / steps)):
        point = {"step": step, "loss": 1.0}
        services.attempt_progress_store(
            attempt=attempt, points=[point], at=began + timedelta(seconds=10 + moment)
        )
    Attempt.objects.filter(pk=attempt.pk).update(
        state=AttemptState.SUCCEEDED, chip="cpu", started_at=began, ended_at=at
    )


def test_steps_and_examples_are_those_of_the_training_split(
    browser: Client, finetune: dict[str, str]
) -> None:
    found = estimate(browser, {**finetune, "epochs": "2", "batch_size": "4"})
    assert found.steps == 2 * -(-found.rows // 4)
    assert 0 < found.rows < factories.ROWS
    capped = estimate(browser, {**finetune, "max_steps": "7"})
    assert capped.steps == 7


def test_memory_grows_with_the_batch_and_is_broken_down(
    browser: Client, finetune: dict[str, str]
) -> None:
    small = estimate(browser, {**finetune, "batch_size": "1"}).memory
    large = estimate(browser, {**finetune, "batch_size": "64"}).memory
    # The tests' model has 32 parameters in float32.
    assert (small.weights, small.gradients, small.optimizer) == (128, 128, 256)
    assert large.activations == 64 * small.activations
    assert large.total > small.total > PROCESS_BYTES


def test_the_form_shows_the_consequence(browser: Client, finetune: dict[str, str]) -> None:
    text = browser.post("/jobs/new/finetune/check", finetune, headers=HTMX).text
    assert "Requires 1 cpu card in queue default" in text
    assert "no pending jobs ahead" in text
    assert "No similar run was measured on cpu." in text


def test_an_empty_validation_split_means_none(browser: Client, finetune: dict[str, str]) -> None:
    form = browser.get("/jobs/new/finetune").context["form"]
    assert form["validation_split"].value() == "validation"
    specs = []
    for given in ({}, {"validation_split": ""}):
        browser.post("/jobs/new/finetune", {**finetune, **given})
        specs.append(Job.objects.latest("pk").spec["validation_split"])
    assert specs == ["validation", None]
    clone = browser.get("/jobs/new/finetune", {"clone": Job.objects.latest("pk").uid})
    assert clone.context["form"]["validation_split"].value() is None


def test_the_duration_is_estimated_from_measured_attempts(
    browser: Client, empty: EmptyCompany, finetune: dict[str, str]
) -> None:
    for seconds in (100, 200):
        browser.post("/jobs/new/finetune", {**finetune, "batch_size": "8", "max_steps": "10"})
        ran(Job.objects.latest("pk"), seconds=seconds)
    known = estimate(browser, {**finetune, "batch_size": "8", "max_steps": "10"}).duration
    assert known is not None
    assert known.runs == 2
    assert known.low == pytest.approx(120, abs=3)
    assert known.high == pytest.approx(220, abs=3)
    twice = estimate(browser, {**finetune, "batch_size": "8", "max_steps": "20"}).duration
    assert twice is not None
    assert twice.high == pytest.approx(420, abs=4)
    # LoRA was never run.
    assert estimate(browser, {**finetune, "method": "lora"}).duration is None


def test_attempts_of_other_teams_are_not_used(
    browser: Client, finetune: dict[str, str], empty: EmptyCompany
) -> None:
    other = factories.team("search")
    stranger = factories.user("sam", team=other)
    job = factories.job(
        actor=stranger,
        team=other,
        queue=empty.queue,
        model=factories.model_version(actor=stranger, team=other),
        dataset=factories.dataset_version(actor=stranger, team=other),
    )
    ran(job, seconds=60)
    assert estimate(browser, finetune).duration is None


def test_the_queue_position_counts_pending_claims(
    browser: Client, filled: FilledCompany, finetune: dict[str, str]
) -> None:
    place = estimate(browser, finetune).place
    assert (place.ahead, place.free_cards, place.cards) == (1, 2, 5)


def test_an_estimate_beyond_card_memory_shows_advice(
    browser: Client, finetune: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {
        name: replace(chip, memory=Bytes(256 << 20))
        for name, chip in adapter_registry.all_chips().items()
    }
    monkeypatch.setattr(adapter_registry, "all_chips", lambda: small)
    text = browser.post("/jobs/new/finetune/check", finetune, headers=HTMX).text
    assert "One card has 256 MiB of memory. Reduce the batch size" in text


def test_the_steps_show_few_fields_and_collapse_the_rest(
    browser: Client, empty: EmptyCompany
) -> None:
    response = browser.get("/jobs/new/finetune")
    text = response.text
    for heading in ("1. Base model", "2. Dataset", "3. Training method"):
        assert heading in text
    assert '<details class="nf-more" >' in text
    assert "No model versions are ready." in text
    assert "No datasets." in text


def test_defaults_are_those_of_the_chosen_model_and_method(
    browser: Client, finetune: dict[str, str]
) -> None:
    address = f"/jobs/new/finetune?model={finetune['model_version']}"
    form = browser.get(address).context["form"]
    assert form["model_version"].value() == finetune["model_version"]
    assert float(form.fields["learning_rate"].widget.attrs["placeholder"]) > 2e-5


def test_an_evaluation_form_keeps_selected_values(browser: Client, filled: FilledCompany) -> None:
    address = f"/jobs/new/evaluate?model={filled.tuned.uid}&dataset={filled.dataset.uid}"
    text = browser.get(address).text
    for uid in (filled.tuned.uid, filled.dataset.uid):
        assert f'<option value="{uid}" selected>' in text


def test_an_evaluation_form_selects_the_training_dataset_of_the_model(
    browser: Client, filled: FilledCompany
) -> None:
    """Not with the newest dataset, the split called test and a metric that is 0 for every model."""
    few = factories.dataset_version(actor=filled.user, team=filled.team, name="few", rows=3)
    form = browser.get(f"/jobs/new/evaluate?model={filled.tuned.uid}").context["form"]
    assert form["dataset_version"].value() == filled.dataset.uid
    assert form["split"].value() == "test"
    address = f"/jobs/new/evaluate?model={filled.base.uid}&dataset={few.uid}"
    form = browser.get(address).context["form"]
    assert (form["dataset_version"].value(), form["split"].value()) == (few.uid, "train")
    few.preview = [{"messages": [{"role": "assistant", "content": "Moon Street_1,7_2A,"}]}]
    few.save()
    assert browser.get(address).context["form"]["metrics"].value() == [
        "exact_match",
        "label_accuracy",
    ]
    few.statistics["answer_characters"]["p50"] = 900
    few.save()
    assert browser.get(address).context["form"]["metrics"].value() == ["perplexity"]


def test_the_base_can_be_evaluated_with_its_model(browser: Client, filled: FilledCompany) -> None:
    before = set(Job.objects.values_list("uid", flat=True))
    form = {
        "team": filled.team.uid,
        "model_version": filled.tuned.uid,
        "dataset_version": filled.dataset.uid,
        "metrics": ["exact_match"],
        "split": "test",
        "chip": "cpu",
        "cards": "1",
        "with_base": "on",
    }
    assert "a second job" in browser.post("/jobs/new/evaluate/check", form, headers=HTMX).text
    answer = browser.post("/jobs/new/evaluate", form)
    created = list(Job.objects.exclude(uid__in=before).order_by("pk"))
    assert [job.model_version for job in created] == [filled.tuned, filled.base]
    assert created[0].spec == created[1].spec
    assert answer["location"] == f"/jobs/{created[0].uid}"
    refused = browser.post("/jobs/new/evaluate", {**form, "model_version": filled.base.uid})
    assert "has no base model" in refused.context["form"].errors["with_base"][0]
    assert Job.objects.count() == len(before) + 2


def test_a_fine_tune_form_selects_a_trainable_model_and_the_team_of_the_dataset(
    browser: Client, filled: FilledCompany
) -> None:
    """Quantized weights, which are newest here, cannot learn."""
    ModelVersion.objects.filter(pk=filled.tuned.pk).update(scheme="w8a8")
    other = factories.team("other")
    Membership.objects.create(user=filled.user, team=other, role=TeamRole.ENGINEER)
    rows = factories.dataset_version(actor=filled.user, team=other, name="theirs")
    form = browser.get(f"/jobs/new/finetune?dataset={rows.uid}").context["form"]
    assert form["model_version"].value() == filled.base.uid
    assert form["team"].value() == other.uid


def test_help_of_fields_is_in_the_readers_language(browser: Client, empty: EmptyCompany) -> None:
    text = browser.get("/jobs/new/finetune", headers=CHINESE).text
    assert "遍历训练样本的次数。" in text
    assert "适配器；用于 lora 和 qlora 方法。" in text
    assert "作业失败前的最大自动重试次数；0 表示禁用。" in text
