"""One product for the whole run of end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.product import Product, running_product
from tests.e2e.rest_client import RestClient


@pytest.fixture(scope="session")
def product() -> Iterator[Product]:
    with running_product(NINEFOLD_LOCAL_CARDS="4") as running:
        yield running


@pytest.fixture(scope="session")
def client(product: Product) -> RestClient:
    return product.client()
