"""Pages of pipelines: put together, looked at, approved anyway, cancelled, taken up again, cloned."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import AuditEntry
from apps.workflows.models import Pipeline, Step
from tests import factories
from tests.cases import for_each_case
from tests.functional.pages.test_repeated_forms import token
from tests.functional.sample_rows import EmptyCompany, FilledCompany

NEW = "/pipelines/new"


@pytest.fixture
def form(filled: FilledCompany) -> dict[str, str]:
    """What a browser sends of the form as it comes, for a model and its rows."""
    return {
        "team": filled.team.uid,
        "model_version": filled.base.uid,
        "dataset_version": filled.dataset.uid,
        "chip": "cpu",
        "cards": "1",
        "tune-wanted": "on",
        "tune-method": "full",
        "measure-wanted": "on",
        "measure-metrics": "exact_match",
        "measure-split": "test",
        "shrink-wanted": "on",
        "shrink-scheme": "w8a8-smoothquant",
        "shrink-metric": "accepted",
        "shrink-otherwise": "stop",
        "again-wanted": "on",
        "again-metrics": "exact_match",
        "again-split": "test",
        "serve-wanted": "on",
        "serve-replicas": "1",
    }


def steps(pipeline: Pipeline) -> list[Step]:
    return list(pipeline.steps.order_by("number"))


def submitted(browser: Client, form: dict[str, str]) -> Pipeline:
    answer = browser.post(NEW, form)
    assert answer.status_code == 302, answer.text
    return Pipeline.objects.get(uid=answer["Location"].rpartition("/")[2])


def without(form: dict[str, str], *prefixes: str) -> dict[str, str]:
    return {
        name: value for name, value in form.items() if name not in {f"{p}-wanted" for p in prefixes}
    }


def test_a_form_that_is_sent_as_it_comes_names_everything_itself(
    browser: Client, form: dict[str, str], filled: FilledCompany
) -> None:
    pipeline = submitted(browser, form)
    dataset = filled.dataset.dataset.name
    assert pipeline.name == dataset
    assert [step.kind for step in steps(pipeline)] == [
        "finetune",
        "evaluate",
        "quantize",
        "evaluate",
        "deploy",
    ]
    tune, _measure, shrink, _again, serve = steps(pipeline)
    assert tune.output_name == f"{dataset}-model"
    assert shrink.output_name == serve.deployment_name == f"{dataset}-model-w8a8"
    assert shrink.gate == {"metric": "accepted", "threshold": None, "otherwise": "stop"}


@pytest.mark.parametrize(
    ("left_out", "kinds"),
    [
        (("tune", "shrink", "again"), ["evaluate", "deploy"]),
        (("measure", "shrink", "again", "serve"), ["finetune"]),
        (("tune", "measure", "again"), ["quantize", "deploy"]),
    ],
)
def test_each_step_can_be_left_out(
    browser: Client, form: dict[str, str], left_out: tuple[str, ...], kinds: list[str]
) -> None:
    # What is wrong in a step that nobody wants is not wrong.
    odd = {f"{left_out[0]}-limit": "many", f"{left_out[0]}-output_name": "no slug!"}
    pipeline = submitted(browser, {**without(form, *left_out), **odd})
    assert [step.kind for step in steps(pipeline)] == kinds


def test_a_gate_is_filled_in_and_its_figure_is_measured(
    browser: Client, form: dict[str, str]
) -> None:
    gate = {
        "measure-metric": "perplexity",
        "measure-threshold": "12.5",
        "measure-otherwise": "skip",
    }
    measure = steps(submitted(browser, {**form, **gate}))[1]
    assert measure.gate == {"metric": "perplexity", "threshold": 12.5, "otherwise": "skip"}
    assert measure.spec["metrics"] == ["exact_match", "perplexity"]


@for_each_case(
    ("changes", "name", "reason"),
    [
        ({"tune-learning_rate": "-1"}, "tune-learning_rate", "learning_rate must be"),
        (
            {"measure-metric": "exact_match"},
            "measure-threshold",
            "requires a threshold for exact_match, got None",
        ),
        (
            {"again-metric": "exact_match", "again-threshold": "80"},
            "again-threshold",
            "from 0 to 1",
        ),
        ({"cards": "0"}, "cards", "got 0"),
        ({"serve-replicas": "900"}, "serve-replicas", "got 900"),
        ({"shrink-output_name": "no slug!"}, "shrink-output_name", "Latin letters"),
        ({"dataset_version": ""}, "dataset_version", "required"),
    ],
)
def test_what_is_wrong_stands_beside_its_field_and_what_was_typed_stays(
    browser: Client, form: dict[str, str], changes: dict[str, str], name: str, reason: str
) -> None:
    answer = browser.post(NEW, {**form, **changes})
    assert answer.status_code == 422
    found = re.search(rf'id="id_{name}_error">(.*?)</div></div>', answer.text, re.DOTALL)
    assert found is not None, name
    assert reason in found[1]
    for field, value in changes.items():
        assert not value or f'value="{value}"' in answer.text, field
    checked = browser.post(f"{NEW}/check", {**form, **changes})
    assert f'data-error-field="{name}"' in checked.text
    assert not Pipeline.objects.filter(name="addresses").exists()


def test_no_step_at_all_is_refused(browser: Client, form: dict[str, str]) -> None:
    every = ("tune", "measure", "shrink", "again", "serve")
    answer = browser.post(NEW, without(form, *every))
    assert answer.status_code == 422
    assert "choose at least one step" in answer.text


def test_the_check_says_what_will_happen_and_keeps_nothing(
    browser: Client, form: dict[str, str], filled: FilledCompany
) -> None:
    before = Pipeline.objects.count()
    text = browser.post(f"{NEW}/check", form).text
    name = f"{filled.dataset.dataset.name}-model"
    assert f"creates a new version of {name}-w8a8" in text
    assert f"serves the version as {name}-w8a8" in text
    assert "gate: requires an accepted version" in text
    assert Pipeline.objects.count() == before


def test_a_form_that_is_sent_twice_makes_one_pipeline(
    browser: Client, form: dict[str, str]
) -> None:
    before = Pipeline.objects.count()
    form["once"] = token(browser, NEW)
    first, second = browser.post(NEW, form), browser.post(NEW, form, follow=True)
    assert Pipeline.objects.count() == before + 1
    assert second.redirect_chain[0][0] == first["Location"]
    assert "already submitted" in second.text


def test_the_model_and_dataset_of_the_address_are_chosen_already(
    browser: Client, filled: FilledCompany
) -> None:
    text = browser.get(f"{NEW}?model={filled.base.uid}&dataset={filled.dataset.uid}").text
    assert f'<option value="{filled.base.uid}" selected>' in text


def test_the_list_shows_each_pipeline_with_the_states_of_its_steps(
    browser: Client, filled: FilledCompany
) -> None:
    text = browser.get("/pipelines").text
    assert text.count('class="nf-step-strip"') == 2
    assert "Fine-tune: running" in text
    assert "Evaluate: waiting for approval at a gate" in text
    only = browser.get("/pipelines?state=held").text
    assert filled.held.name in only
    assert filled.pipeline.name not in only
    lines = b"".join(browser.get("/pipelines?format=csv").streaming_content)  # type: ignore[attr-defined]
    assert b"finetune:succeeded evaluate:held deploy:waiting" in lines


def test_the_list_polls_while_something_runs_and_stops_by_itself(
    browser: Client, filled: FilledCompany
) -> None:
    fragment: dict[str, Any] = {"headers": {"HX-Request": "true"}}
    assert browser.get("/pipelines", **fragment).status_code == 200
    assert browser.get("/pipelines?state=held", **fragment).status_code == 286
    assert browser.get(f"/pipelines/{filled.held.uid}", **fragment).status_code == 286


def test_a_held_pipeline_shows_why_and_its_gate_is_overridden_with_a_reason(
    browser: Client, filled: FilledCompany
) -> None:
    page = f"/pipelines/{filled.held.uid}"
    text = browser.get(page).text
    assert "exact_match is 0.61, which is too low; the gate requires ≥ 0.8" in text
    assert "not reached" in text
    refused = browser.post(f"{page}/approve-anyway", {"reason": " "}, follow=True).text
    assert "1 to 500 characters" in refused
    done = browser.post(
        f"{page}/approve-anyway", {"reason": "I looked at the rows"}, follow=True
    ).text
    assert "gate was approved" in done
    assert "approved the pipeline despite the failed gate: “I looked at the rows”" in done
    assert AuditEntry.objects.filter(action="pipeline.approve_anyway").count() == 1
    again = browser.post(f"{page}/approve-anyway", {"reason": "once more"}, follow=True).text
    assert "cannot be approved anyway" in again


def test_a_running_pipeline_is_cancelled_and_a_failed_one_retried(
    browser: Client, filled: FilledCompany
) -> None:
    running = f"/pipelines/{filled.pipeline.uid}"
    assert "is being cancelled" in browser.post(f"{running}/cancel", follow=True).text
    assert "Cancellation requested by" in browser.get(running).text
    refused = browser.post(f"{running}/retry", follow=True).text
    assert "cannot be tried again" in refused
    failed = factories.pipeline(
        actor=filled.user,
        team=filled.team,
        queue=filled.queue,
        model=filled.base,
        dataset=filled.dataset,
        name="no luck",
        state="failed",
    )
    page = f"/pipelines/{failed.uid}"
    text = browser.get(page).text
    assert "Retry from step 1" in text
    assert "the disk is full" in text
    assert "The pipeline was resumed." in browser.post(f"{page}/retry", follow=True).text
    assert "retried by ada" in browser.get(f"{page}?tab=events").text


def test_a_clone_asks_for_the_same_and_for_what_the_form_does_not_show(
    browser: Client, form: dict[str, str], filled: FilledCompany
) -> None:
    form |= {
        "tune-rest": '{"weight_decay": 0.01}',
        "tune-epochs": "2",
        "measure-metric": "exact_match",
        "measure-threshold": "0.7",
        "measure-otherwise": "skip",
    }
    first = submitted(browser, without(form, "shrink", "again"))
    page = browser.get(f"{NEW}?clone={first.uid}").text
    assert "weight decay 0.01" in page
    assert re.search(r'name="shrink-wanted"[^>]*checked', page) is None
    sent = dict(
        re.findall(r'<input type="(?:hidden|text|number)" name="([^"]+)" value="([^"]*)"', page)
    )
    for name, chosen in re.findall(
        r'<select name="([^"]+)".*?<option value="([^"]*)" selected', page, re.DOTALL
    ):
        sent[name] = chosen
    for name in re.findall(r'name="(\w+-wanted)"[^>]*checked', page):
        sent[name] = "on"
    sent["tune-rest"] = sent["tune-rest"].replace("&quot;", '"')
    sent["measure-metrics"] = "exact_match"
    second = submitted(browser, {name: value for name, value in sent.items() if name != "once"})
    asked = [
        (one.kind, one.spec, one.gate, one.output_name, one.deployment_name)
        for pipeline in (first, second)
        for one in steps(pipeline)
    ]
    assert asked[:3] == asked[3:]
    assert asked[0][1]["weight_decay"] == 0.01


def test_what_cannot_be_done_is_shown_with_the_reason(
    viewer: Client, filled: FilledCompany, browser: Client
) -> None:
    text = viewer.get(f"/pipelines/{filled.held.uid}").text
    assert text.count("is read-only") >= 3
    assert "override-reason" not in text
    assert (
        viewer.post(f"/pipelines/{filled.held.uid}/approve-anyway", {"reason": "x"}).status_code
        == 403
    )
    assert "Only failed or cancelled pipelines" in browser.get(f"/pipelines/{filled.held.uid}").text


def test_a_viewer_cannot_submit_a_pipeline(
    viewer: Client, form: dict[str, str], empty: EmptyCompany
) -> None:
    before = Pipeline.objects.count()
    assert viewer.post(NEW, form).status_code == 403
    assert Pipeline.objects.count() == before
