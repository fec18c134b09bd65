"""The main job through the pages, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.e2e.browsers import REQUESTS_TAKEN_BACK
from tests.e2e.main_job import MODEL, talking_client
from tests.e2e.product import Product, running_product
from tests.e2e.rest_client import RestClient
from tests.e2e.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.product, pytest.mark.engine]

MINUTE = 60_000.0
JOB = re.compile(r"/jobs/[0-9a-f]{32}$")
QUESTION = "青海省西宁市城北区三其村"
SAMPLE = Path(str(files("ninefold_runtime.samples") / "data" / "addresses.jsonl"))
#: From the log-in page to an answer.
MOST_CLICKS = 12
#: Calls home for each press of a button of the mouse, and for nothing that a script or the keyboard did.
COUNT_CLICKS = """
addEventListener("click", (event) => { if (event.isTrusted && event.detail) clicked(); }, { capture: true });
"""
#: The lengths that the last answer has had, one for each change.
WATCH_ANSWER = """
() => {
  const seen = (window.seenLengths = []);
  new MutationObserver(() => {
    const answer = [...document.querySelectorAll('[data-role="assistant"] span')].pop();
    if (answer) seen.push(answer.textContent.length);
  }).observe(document.querySelector("#conversation"), { childList: true, subtree: true, characterData: true });
}
"""
POINTS = "() => document.querySelector('[data-chart*=loss] .nf-plot')?.data?.[0]?.x.length ?? 0"


def complaints_of(page: Page) -> list[str]:
    """What it writes to the console as an error, from now on."""
    complaints: list[str] = []

    def said(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(REQUESTS_TAKEN_BACK):
            complaints.append(f"{message.text} ({message.location['url']})")

    page.on("console", said)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints


def signed_in(context: BrowserContext, product: Product) -> Page:
    """A page at home."""
    opened = context.new_page()
    opened.goto("/login")
    sign_in(opened, product)
    expect(opened).to_have_url(re.compile(r"/$"))
    return opened


def sign_in(page: Page, product: Product) -> None:
    """On the log-in page, wherever that leads."""
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(product.password)
    page.get_by_role("button", name="Sign in").click()


@pytest.fixture
def context(browser: Browser, product: Product) -> Iterator[BrowserContext]:
    opened = browser.new_context(base_url=product.web, locale="en")
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext, product: Product) -> Iterator[Page]:
    """A page that has signed in, and that may complain of nothing."""
    opened = signed_in(context, product)
    complaints = complaints_of(opened)
    yield opened
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
    page.get_by_label("Name").fill("walked")
    page.get_by_label("File").set_input_files(str(SAMPLE))
    page.get_by_role("button", name="Upload").click()
    expect(page).to_have_url(re.compile(r"/datasets/versions/"))
    expect(page.get_by_text("4,800").first).to_be_visible()

    page.goto(f"/jobs/new/finetune?model={sample['uid']}")
    page.get_by_label("Dataset", exact=True).select_option(label="walked v1")
    page.get_by_label("New model name").fill("walked-parser")
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Max steps").fill("60")
    page.get_by_label("Logging interval").fill("5")
    page.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(JOB)
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
    page.get_by_label("Dataset", exact=True).select_option(label="walked v1")
    page.get_by_label("Dataset split").select_option("test")
    page.get_by_label("Max examples").fill("16")
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
    page.get_by_label("Message").fill(QUESTION)
    page.get_by_role("button", name="Send").click()
    expect(page.locator('[data-role="assistant"] span').first).not_to_be_empty(timeout=MINUTE)

    page.goto("/keys/new")
    page.get_by_label("Name").fill("walked")
    page.get_by_role("button", name="Create API key").click()
    key = page.locator("#secret").inner_text().strip()
    talk(product.gateway, key=key, model=client.get(f"deployments/{deployment}")["name"])
    wait_until(
        lambda: client.get("usage", route=client.get(f"deployments/{deployment}")["name"]),
        lambda usage: len(usage["results"]) >= 2,
        within=30,
        what="the usage of both calls",
    )
    client.post(f"deployments/{deployment}/stop")


@pytest.fixture(scope="module")
def fresh_product() -> Iterator[Product]:
    """Nobody has done anything with it yet."""
    with running_product(NINEFOLD_LOCAL_CARDS="2") as running:
        yield running


@pytest.mark.full
def test_somebody_new_talks_to_their_own_model_within_twelve_clicks(
    browser: Browser, fresh_product: Product
) -> None:
    wait_until(
        lambda: fresh_product.client().get("model-versions", model=MODEL)["results"],
        bool,
        within=600,
        what="the sample model",
    )
    clicks: list[str] = []
    context = browser.new_context(base_url=fresh_product.web, locale="en")
    context.expose_binding("clicked", lambda source: clicks.append(source["page"].url))
    context.add_init_script(COUNT_CLICKS)
    page = context.new_page()
    complaints = complaints_of(page)

    page.goto("/login")
    page.keyboard.type("admin")
    page.keyboard.press("Tab")
    page.keyboard.type(fresh_product.password)
    page.get_by_role("button", name="Sign in").click()

    page.get_by_role("link", name="Upload: Upload a dataset").click()
    with page.expect_file_chooser() as chooser:
        page.get_by_label("File").click()
    chooser.value.set_files(str(SAMPLE))
    page.get_by_role("button", name="Upload").click()

    page.get_by_role("link", name="Fine-tune with this dataset").click()
    # A new user has no reason to shorten the training; a test has.
    page.get_by_label("Epochs").click()
    page.keyboard.type("0.5")
    expect(page.get_by_text("Ready to submit.")).to_be_visible()
    page.get_by_role("button", name="Submit").click()

    # The page is left alone: what changes on it, changes by itself.
    expect(page.locator("[data-chart*=loss] .main-svg").first).to_be_visible(timeout=3 * MINUTE)
    points = page.evaluate(POINTS)
    wait_until(
        lambda: page.evaluate(POINTS),
        lambda count: count > points,
        within=60,
        what="more points of the loss",
    )
    expect(page.get_by_role("button", name="Deploy")).to_be_visible(timeout=8 * MINUTE)
    notice = page.locator("#bell-menu li", has_text="addresses-model")
    expect(notice).to_have_count(1, timeout=MINUTE)

    page.get_by_role("button", name="Deploy").click()
    page.get_by_role("link", name="Open playground").click(timeout=4 * MINUTE)
    # The field is where typing goes, as soon as the page is there.
    expect(page.get_by_label("Message")).to_be_focused(timeout=MINUTE)
    page.evaluate(WATCH_ANSWER)
    page.keyboard.type(QUESTION)
    page.get_by_role("button", name="Send").click()
    expect(page.locator("[data-figures]")).to_be_visible(timeout=MINUTE)

    lengths = page.evaluate("seenLengths")
    assert len(set(lengths)) > 2, "the answer did not come piece by piece"
    assert len(clicks) <= MOST_CLICKS, clicks
    assert not complaints
    context.close()


def submit_a_script(page: Page, *, command: str) -> None:
    page.goto("/jobs/new/script")
    page.get_by_label("Command").fill(command)
    page.get_by_role("button", name="Submit").dblclick()
    expect(page).to_have_url(JOB)


def test_a_form_pressed_twice_makes_one_job_and_so_does_going_back_to_it(
    page: Page, client: RestClient
) -> None:
    before = len(client.get("jobs")["results"])
    submit_a_script(page, command="python\n-V")
    job = page.url
    page.go_back()
    expect(page.get_by_label("Command")).to_have_value("python\n-V")
    page.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(job)
    expect(page.get_by_text("This form was already submitted")).to_be_visible()
    assert len(client.get("jobs")["results"]) == before + 1


def test_logging_out_in_another_tab_breaks_neither_a_live_page_nor_a_form(
    context: BrowserContext, product: Product, client: RestClient
) -> None:
    live = signed_in(context, product)
    submit_a_script(live, command="python\n-c\nimport time; time.sleep(600)")
    job = live.url
    form = context.new_page()
    form.goto("/jobs/new/script")
    other = context.new_page()
    other.goto("/")
    other.get_by_label("Account of admin").click()
    other.get_by_role("button", name="Sign out").click()
    expect(other).to_have_url(re.compile("/login"))

    expect(live).to_have_url(re.compile(r"/login\?next="), timeout=MINUTE)
    form.get_by_label("Command").press_sequentially("python")
    expect(form.get_by_text("You are signed out.")).to_be_visible()
    sign_in(live, product)
    expect(live).to_have_url(job)

    form.get_by_label("Command").press_sequentially("\n-V")
    expect(form.get_by_text("Ready to submit.")).to_be_visible()
    form.get_by_role("button", name="Submit").click()
    expect(form).to_have_url(JOB)
    client.post(f"jobs/{job.rsplit('/', 1)[-1]}/cancel")


def talk(gateway: str, *, key: str, model: str) -> None:
    """A streamed answer by the official client."""
    with talking_client(gateway, key=key, model=model) as client:
        stream = client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": QUESTION}],
            max_tokens=32,
            stream=True,
        )
        assert sum(1 for chunk in stream if chunk.choices) > 1
