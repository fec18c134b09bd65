"""The whole way from a base model to a quantized one that answers, as one submission."""

from __future__ import annotations

import pytest

from tests.e2e.main_pipeline import SIZES, MainPipeline
from tests.e2e.product import Product
from tests.e2e.rest_client import RestClient

# Each of its steps is in the tests of engines and workflows; the whole takes minutes.
pytestmark = [pytest.mark.full, pytest.mark.product, pytest.mark.engine]


def test_a_pipeline_leads_from_a_base_model_to_a_quantized_one_that_answers(
    product: Product, client: RestClient
) -> None:
    line = MainPipeline(client, gateway=product.gateway, size=SIZES["quick"])
    ended = line.follow()
    print(line.report.table())
    tune, measure, quantize, again, deploy = ended["steps"]
    assert tune["output_version"] == measure["model_version"] == quantize["model_version"]
    assert quantize["output_version"] == again["model_version"] == deploy["model_version"]
    version = client.get(f"model-versions/{quantize['output_version']['uid']}")
    assert version["scheme"] == "w8a8"
    assert 0 <= again["metrics"]["exact_match"] <= 1
