"""Cards that are owed are given back: set in the console, borrowed, taken back, and gone on with later."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.main_job import ENDED, ENGINE_WITHIN, MODEL
from tests.e2e.product import Product, running_product
from tests.e2e.rest_client import RestClient
from tests.e2e.test_browser import MINUTE, complaints_of, signed_in
from tests.e2e.waiting import wait_until

pytestmark = [pytest.mark.full, pytest.mark.browser, pytest.mark.product, pytest.mark.engine]

SAMPLE = Path(str(files("ninefold_runtime.samples") / "data" / "addresses.jsonl"))
#: All that the machine has; a thread of the processor each.
CARDS = 1
SAVED_EVERY = 20
STEPS = 300


@pytest.fixture
def small_product() -> Iterator[Product]:
    with running_product(NINEFOLD_LOCAL_CARDS=str(CARDS), NINEFOLD_GRACE_SECONDS="60") as running:
        yield running


@pytest.fixture
def page(browser: Browser, small_product: Product) -> Iterator[Page]:
    context = browser.new_context(base_url=small_product.web, locale="en")
    opened = signed_in(context, small_product)
    complaints = complaints_of(opened)
    yield opened
    context.close()
    assert not complaints


def add_queue(page: Page, *, name: str, guaranteed: int | None = None) -> None:
    """In the console, for the team of the same name."""
    page.goto("/admin/quotas/queue/add/")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Team", exact=True).select_option(label=name)
    if guaranteed is not None:
        page.locator("[name='cards-cpu-guaranteed']").fill(str(guaranteed))
        expect(page.locator("#preview")).to_contain_text(str(guaranteed))
    page.get_by_role("button", name="Save").first.click()
    expect(page.get_by_text(f"Queue {name} saved.")).to_be_visible()


class Team:
    """A team with a dataset, that submits to the queue of its name."""

    def __init__(self, client: RestClient, name: str, *, model: str) -> None:
        self.client, self.name, self.model = client, name, model
        self.uid = client.post("teams", {"name": name, "slug": name})["uid"]
        self.rows = client.upload("datasets", file=SAMPLE, name="addresses", team=self.uid)["uid"]

    def finetune(self, *, steps: int) -> str:
        """The uid of a job that needs every card."""
        spec = {"max_steps": steps, "batch_size": 8, "checkpoint_every_steps": SAVED_EVERY}
        asked = {
            "kind": "finetune",
            "name": f"{self.name} trains",
            "team": self.uid,
            "queue": self.name,
            "model_version": self.model,
            "dataset_version": self.rows,
            "output_name": f"{self.name}-parser",
            "cards": CARDS,
            "spec": spec,
        }
        uid: str = self.client.post("jobs", asked)["uid"]
        return uid

    def seen(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"jobs/{job}")
        return found

    def attempt(self, job: str, *, number: int, step: int, within: float) -> dict[str, Any]:
        """That attempt, as soon as it has reported that step."""
        seen: dict[str, Any] = wait_until(
            lambda: self.seen(job)["attempt"],
            lambda attempt: (
                attempt["number"] > number
                or (attempt["number"] == number and attempt["progress"].get("step", 0) >= step)
            ),
            within=within,
            what=f"step {step} of attempt {number}",
            every=0.2,
        )
        assert seen["number"] == number
        return seen

    def until(self, job: str, *states: str, within: float) -> dict[str, Any]:
        seen: dict[str, Any] = wait_until(
            lambda: self.seen(job),
            lambda found: found["state"] in (*states, *ENDED),
            within=within,
            what=f"{job} {states}",
        )
        return seen


def test_a_borrower_gives_back_what_is_owed_and_goes_on_from_its_checkpoint(
    page: Page, small_product: Product
) -> None:
    client = small_product.client()
    model = wait_until(
        lambda: client.get("model-versions", model=MODEL)["results"],
        bool,
        within=ENGINE_WITHIN,
        what="the sample model",
    )[0]["uid"]
    owners, guests = (Team(client, name, model=model) for name in ("owners", "guests"))
    add_queue(page, name="owners", guaranteed=CARDS)
    add_queue(page, name="guests")

    borrowing = guests.finetune(steps=STEPS)
    first = guests.attempt(borrowing, number=1, step=2 * SAVED_EVERY + 5, within=ENGINE_WITHIN)
    page.goto(f"/jobs/{borrowing}")
    guaranteed = owners.finetune(steps=SAVED_EVERY)

    # Whoever looks at the borrower's page sees it wait again, and reads why.
    expect(page.get_by_role("heading", name="Pending reason")).to_be_visible(timeout=2 * MINUTE)
    assert owners.until(guaranteed, within=300)["state"] == "succeeded"
    second = guests.attempt(borrowing, number=2, step=1, within=300)
    assert second["continues"] == first["uid"]
    assert second["progress"]["step"] > 2 * SAVED_EVERY
    assert guests.until(borrowing, within=600)["state"] == "succeeded"
    curve = client.get(f"jobs/{borrowing}/curve")["points"]
    assert max(point["step"] for point in curve) == STEPS
