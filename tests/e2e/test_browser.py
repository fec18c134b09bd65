"""The main job through the pages, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.main_job import MODEL, talking_client
from tests.e2e.product import Product
from tests.e2e.rest_client import RestClient
from tests.e2e.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.product, pytest.mark.engine]

MINUTE = 60_000.0


@pytest.fixture
def page(browser: Browser, product: Product) -> Iterator[Page]:
    """A page that has signed in, and that may complain of nothing."""
    context = browser.new_context(base_url=product.web, locale="en")
    opened = context.new_page()
    complaints: list[str] = []
    opened.on(
        "console", lambda said: complaints.append(said.text) if said.type == "error" else None
    )
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto("/login")
    opened.get_by_label("User name").fill("admin")
    opened.get_by_label("Password").fill(product.password)
    opened.get_by_role("button", name="Log in").click()
    expect(opened).to_have_url(re.compile(r"/$"))
    yield opened
    context.close()
    assert not complaints


def test_from_a_dataset_to_a_model_that_talks(
    page: Page, product: Product, client: RestClient, tmp_path: Path
) -> None:
    sample = wait_until(
        lambda: client.get("model-versions", model=MODEL)["results"],
        bool,
        within=600,
        what="the sample model",
    )[0]

    page.goto("/datasets/new")
    rows = files("ninefold_runtime.samples") / "data" / "addresses.jsonl"
    page.get_by_label("Name").fill("walked")
    page.get_by_label("File").set_input_files(str(rows))
    page.get_by_role("button", name="Upload").click()
    expect(page).to_have_url(re.compile(r"/datasets/versions/"))
    expect(page.get_by_text("4,800").first).to_be_visible()

    page.goto(f"/jobs/new/finetune?model={sample['uid']}")
    page.get_by_label("Dataset").select_option(label="walked v1")
    page.get_by_label("Name of the new model").fill("walked-parser")
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Most steps").fill("60")
    page.get_by_label("Report every … steps").fill("5")
    page.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(re.compile(r"/jobs/[0-9a-f]{32}$"))
    job = page.url.rsplit("/", 1)[-1]
    # The page is left alone: what changes on it, changes by itself.
    expect(page.get_by_role("link", name="walked-parser v1")).to_be_visible(timeout=8 * MINUTE)
    losses = [
        point["loss"] for point in client.get(f"jobs/{job}/curve")["points"] if "loss" in point
    ]
    assert losses[-1] < losses[0]
    expect(page.locator("[data-chart] .main-svg").first).to_be_visible()

    page.get_by_role("link", name="walked-parser v1").click()
    page.get_by_role("link", name="Evaluate").first.click()
    page.get_by_label("Dataset").select_option(label="walked v1")
    page.get_by_label("Split").select_option("test")
    page.get_by_label("Most rows").fill("16")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("evaluated walked-parser v1").first).to_be_visible(timeout=4 * MINUTE)

    version = client.get("model-versions", job=job)["results"][0]["uid"]
    page.goto(f"/models/versions/{version}")
    page.get_by_role("button", name="Deploy").first.click()
    expect(page).to_have_url(re.compile(r"/deployments/[0-9a-f]{32}$"))
    deployment = page.url.rsplit("/", 1)[-1]
    wait_until(
        lambda: client.get(f"deployments/{deployment}")["state"],
        lambda state: state == "ready",
        within=200,
        what="a ready deployment",
    )

    page.goto(f"/playground?deployment={deployment}")
    page.get_by_label("Message").fill("青海省西宁市城北区三其村")
    page.get_by_role("button", name="Send").click()
    expect(page.locator('[data-role="assistant"] span').first).not_to_be_empty(timeout=MINUTE)

    page.goto("/keys/new")
    page.get_by_label("Name").fill("walked")
    page.get_by_role("button", name="Make the key").click()
    key = page.locator("#secret").inner_text().strip()
    talk(product.gateway, key=key, model=client.get(f"deployments/{deployment}")["name"])
    wait_until(
        lambda: client.get("usage", route=client.get(f"deployments/{deployment}")["name"]),
        lambda usage: len(usage["results"]) >= 2,
        within=30,
        what="the usage of both calls",
    )
    client.post(f"deployments/{deployment}/stop")


def talk(gateway: str, *, key: str, model: str) -> None:
    """A streamed answer by the official client."""
    with talking_client(gateway, key=key, model=model) as client:
        stream = client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": "青海省西宁市城北区三其村"}],
            max_tokens=32,
            stream=True,
        )
        assert sum(1 for chunk in stream if chunk.choices) > 1
