"""The main job, as a script would do it."""

from __future__ import annotations

import pytest

from tests.e2e.main_job import RECIPES, MainJob
from tests.e2e.product import Product
from tests.e2e.rest_client import RestClient

pytestmark = [pytest.mark.full, pytest.mark.product, pytest.mark.engine]


def test_the_main_job_runs_by_rest_and_the_tuned_model_answers_better(
    product: Product, client: RestClient
) -> None:
    report = MainJob(client, gateway=product.gateway, recipe=RECIPES["quick"]).run()
    print(report.table())
    assert (
        report.measurements["label_accuracy_after"] > report.measurements["label_accuracy_before"]
    )
