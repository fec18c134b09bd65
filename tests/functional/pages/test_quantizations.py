"""Quantizing by the pages: the form, the comparison, and the decision about what lost too much."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.jobs.models import Job
from apps.models.models import DatasetVersion, ModelVersion
from controlplane.domain.registry.versions import GateDecision
from tests import factories
from tests.cases import for_each_case
from tests.functional.sample_rows import EmptyCompany, FilledCompany


def _page_of(version: ModelVersion) -> str:
    return f"/models/versions/{version.uid}/quantization"


def _asked(filled: FilledCompany, **changes: Any) -> dict[str, Any]:
    return {
        "team": filled.team.uid,
        "model_version": filled.tuned.uid,
        "dataset_version": filled.dataset.uid,
        "output_name": "small",
        "scheme": "w8a8-smoothquant",
        "engine": "llm_compressor",
        "chip": "cpu",
        "cards": "1",
        **changes,
    }


@pytest.fixture
def unfit(filled: FilledCompany) -> ModelVersion:
    return factories.quantized_version(
        actor=filled.user, team=filled.team, base=filled.tuned, lost=9
    )


def test_a_quantization_is_submitted_with_what_was_left_open_filled_in(
    browser: Client, filled: FilledCompany
) -> None:
    page = browser.get("/jobs/new/quantize", {"model": filled.tuned.uid})
    assert page.status_code == 200
    asked = _asked(filled, tolerance_perplexity_increase="0.1", ignore="lm_head, re:.*down_proj")
    response = browser.post("/jobs/new/quantize", asked)
    assert response.status_code == 302, response.context["form"].errors
    job = Job.objects.get(uid=response["Location"].rpartition("/")[2])
    assert (job.kind, job.engine, job.output_name) == ("quantize", "llm_compressor", "small")
    assert job.spec["tolerance"] == {"perplexity_increase": 0.1, "accuracy_drop": 0.01}
    assert job.spec["ignore"] == ["lm_head", "re:.*down_proj"]
    assert job.spec["max_length"] == filled.tuned.context_length

    # An empty limit is none; the page offers the default as a value.
    limits = ("tolerance_perplexity_increase", "tolerance_accuracy_drop", "limit")
    assert [page.context["form"][name].value() for name in limits] == [0.05, 0.01, 256]
    response = browser.post("/jobs/new/quantize", _asked(filled, **dict.fromkeys(limits, "")))
    unlimited = Job.objects.get(uid=response["Location"].rpartition("/")[2])
    assert unlimited.spec["tolerance"] == {"perplexity_increase": None, "accuracy_drop": None}
    assert unlimited.spec["limit"] is None

    clone = browser.get("/jobs/new/quantize", {"clone": job.uid})
    assert clone.context["form"]["ignore"].value() == "lm_head, re:.*down_proj"
    assert clone.context["form"]["tolerance_perplexity_increase"].value() == 0.1


@for_each_case(
    ("changes", "field", "message"),
    [
        (
            {"calibration_split": "test"},
            "calibration_split",
            "has no examples in the split &#x27;test&#x27;",
        ),
        (
            {"split": "test"},
            "split",
            "has no examples in the split &#x27;test&#x27;; it has train, validation",
        ),
        ({"group_size": "8"}, "group_size", "got 8"),
        ({"max_length": "4096"}, "max_length", "got 4096"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(
    browser: Client, filled: FilledCompany, changes: dict[str, str], field: str, message: str
) -> None:
    statistics = filled.dataset.statistics
    statistics["rows_by_split"]["test"] = 0
    DatasetVersion.objects.filter(pk=filled.dataset.pk).update(statistics=statistics)
    asked = _asked(filled, **{"split": "validation", **changes})
    response = browser.post("/jobs/new/quantize", asked)
    assert response.status_code == 422
    assert message in str(response.context["form"].errors[field])


def test_a_version_that_is_quantized_already_cannot_be_quantized_or_trained(
    browser: Client, filled: FilledCompany, unfit: ModelVersion
) -> None:
    response = browser.post("/jobs/new/quantize", _asked(filled, model_version=unfit.uid))
    assert response.status_code == 422
    assert "is already quantized to w4a16" in str(response.context["form"].errors["model_version"])
    steps = browser.get(f"/models/versions/{unfit.uid}").context["steps"]
    assert steps.tune == steps.quantize != ""
    assert steps.evaluate == ""


def test_a_scheme_that_does_not_fit_the_model_is_greyed_out_with_the_reason(
    browser: Client, filled: FilledCompany
) -> None:
    ModelVersion.objects.filter(pk=filled.tuned.pk).update(config={"hidden_size": 100})
    page = browser.get("/jobs/new/quantize", {"model": filled.tuned.uid}).content.decode()
    option = page[page.index('value="w4a16-awq"') :]
    assert "disabled" in option[: option.index(">")]
    assert (
        "none of the group sizes 128, 64, 32, 16 divides the layer widths 100 of the model"
        in option[:600]
    )


def test_an_engine_that_does_not_run_on_the_chip_is_greyed_out_with_the_reason(
    browser: Client, filled: FilledCompany
) -> None:
    page = browser.get("/jobs/new/quantize").content.decode()
    option = page[page.index('<option value="msmodelslim"') :]
    assert "disabled" in option[: option.index(">")]
    assert "not available" in option[: option.index("</option>")]


def test_before_and_after_stand_side_by_side(
    browser: Client, filled: FilledCompany, unfit: ModelVersion
) -> None:
    page = browser.get(_page_of(unfit)).content.decode()
    for text in (
        "not accepted",
        "exact match changed from 0.875 to 0.785, -9.00 points; the tolerance is a decrease of 1.00 points",
        "2.7 MiB",
        "1.0 MiB",
        "0.392 ×",
        "2 of 6 responses changed",
        "128 examples of train",
    ):
        assert text in page
    # The sum of what serves and what is looked at is one page: the version's own leads to it.
    assert _page_of(unfit) in browser.get(f"/models/versions/{unfit.uid}").content.decode()


def test_plain_weights_have_no_such_page(browser: Client, filled: FilledCompany) -> None:
    assert browser.get(_page_of(filled.tuned)).status_code == 404


def test_a_version_that_lost_too_much_is_deployed_only_once_it_was_accepted(
    browser: Client, filled: FilledCompany, unfit: ModelVersion
) -> None:
    version = f"/models/versions/{unfit.uid}"
    assert "Approve the version first" in browser.get(version).content.decode()
    browser.post(f"/deployments/of/{unfit.uid}")
    assert not filled.team.deployments.filter(revisions__model_version=unfit).exists()

    response = browser.post(f"{version}/accept", {"reason": "good enough for drafts"}, follow=True)
    assert "The quantized version was accepted and can be deployed." in response.content.decode()
    unfit.refresh_from_db()
    assert unfit.acceptance == GateDecision.OVERRIDDEN
    assert browser.get(version).context["steps"].deploy == ""

    browser.post(f"{version}/reject", {"reason": "it was not"})
    unfit.refresh_from_db()
    assert unfit.acceptance == GateDecision.REJECTED


def test_a_gate_override_without_a_reason_changes_nothing(
    browser: Client, filled: FilledCompany, unfit: ModelVersion
) -> None:
    response = browser.post(f"/models/versions/{unfit.uid}/accept", {"reason": " "}, follow=True)
    assert "Enter a reason" in response.content.decode()
    unfit.refresh_from_db()
    assert unfit.acceptance == GateDecision.REJECTED


def test_what_was_quantized_elsewhere_is_accepted_without_figures(
    browser: Client, empty: EmptyCompany
) -> None:
    base = factories.model_version(actor=empty.user, team=empty.team)
    version = factories.quantized_version(actor=empty.user, team=empty.team, base=base)
    ModelVersion.objects.filter(pk=version.pk).update(metrics={}, acceptance_reason="", base=None)
    page = browser.get(_page_of(version)).content.decode()
    assert "Quantized outside Ninefold. No measurements." in page
    assert "Quality comparison" not in page
