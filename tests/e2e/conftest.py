"""One product for the whole run of end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browsers import NoBrowser, browser_started
from tests.e2e.product import Product, running_product
from tests.e2e.rest_client import RestClient
from tests.e2e.sample_product import SampleProduct, shared_sample_product

# A guard against hanging, in milliseconds: how long a page takes depends on the load of the machine.
expect.set_options(timeout=60_000)


@pytest.fixture(scope="session")
def model_root() -> Iterator[Path]:
    """The folder that the product imports models from; every account may read it."""
    with TemporaryDirectory(prefix="ninefold-models-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def product(model_root: Path) -> Iterator[Product]:
    settings = {"NINEFOLD_LOCAL_CARDS": "4", "NINEFOLD_MODEL_ROOTS": str(model_root)}
    with running_product(from_nothing=True, **settings) as running:
        yield running


@pytest.fixture(scope="session")
def client(product: Product) -> RestClient:
    return product.client()


@pytest.fixture(scope="session")
def sample() -> Iterator[SampleProduct]:
    """Pages of a sample company, with static files as the product serves them."""
    with shared_sample_product() as running:
        yield running


# Open in its package only: an event loop runs in this thread meanwhile, and Django refuses its database.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    try:
        with browser_started() as started:
            yield started
    except NoBrowser as reason:
        pytest.skip(str(reason))
