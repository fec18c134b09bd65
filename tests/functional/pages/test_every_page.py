"""What holds for every page, whatever is on it."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from tests.cases import for_each_case
from tests.functional.sample_rows import EmptyCompany, FilledCompany

#: Whatever it shows: what a job used and costs, its secret variables, and what a form offers by name, are four.
MOST_QUERIES = 16

PLAIN = {
    "/": "home",
    "/models": "models",
    "/models/import": "import",
    "/datasets": "datasets",
    "/datasets/new": "dataset form",
    "/jobs": "jobs",
    "/jobs/compare": "comparison of nothing yet",
    "/jobs/new": "kinds",
    "/jobs/new/finetune": "fine-tune form",
    "/jobs/new/evaluate": "evaluate form",
    "/jobs/new/script": "script form",
    "/pipelines": "pipelines",
    "/pipelines/new": "pipeline form",
    "/deployments": "deployments",
    "/deployments/new": "deployment form",
    "/playground": "playground",
    "/keys": "keys",
    "/keys?state=all&playground=on": "all keys",
    "/keys/new": "key form",
    "/fleet": "fleet",
    "/fleet/map": "map of the fleet",
    "/fleet/map?by=state": "map of states",
    "/fleet/faults": "faults",
    "/fleet/held-back": "suppressed",
    "/fleet/waste": "waste",
    "/fleet/exposure": "makers",
    "/fleet/clusters": "clusters",
    "/queues": "queues",
    "/storage": "storage",
    "/storage?tab=biggest": "the biggest things",
    "/storage?tab=deleted": "deleted things",
    "/storage?tab=retention": "rules of retention",
    "/profile": "profile",
    "/profile/password": "password",
}

Address = Callable[[FilledCompany], str]
#: Of what belongs to no team.
OF_ALL: dict[str, Address] = {
    "cluster": lambda it: f"/fleet/clusters/{it.cluster.uid}",
    "node": lambda it: f"/fleet/clusters/{it.cluster.uid}/nodes/here-1",
    "card": lambda it: f"/fleet/cards/{it.card.uid}",
    "history of a card": lambda it: f"/fleet/cards/{it.card.uid}?tab=history",
    "work of a card": lambda it: f"/fleet/cards/{it.card.uid}?tab=work",
}
OF_ONE: dict[str, Address] = {
    "model line": lambda it: f"/models/{it.tuned.line.uid}",
    "comparison of versions": lambda it: f"/models/{it.tuned.line.uid}?tab=compare",
    "lineage of a model": lambda it: f"/models/{it.base.line.uid}?tab=lineage",
    "files of a version": lambda it: f"/models/versions/{it.tuned.uid}?tab=files",
    "lineage of a version": lambda it: f"/models/versions/{it.tuned.uid}?tab=lineage",
    "lineage of a dataset": lambda it: f"/datasets/versions/{it.dataset.uid}/lineage",
    "model version": lambda it: f"/models/versions/{it.tuned.uid}",
    "dataset version": lambda it: f"/datasets/versions/{it.dataset.uid}",
    "dataset": lambda it: f"/datasets/{it.dataset.dataset.uid}",
    "rows of a dataset": lambda it: f"/datasets/versions/{it.dataset.uid}/rows?q=6",
    "waiting job": lambda it: f"/jobs/{it.waiting.uid}",
    "running job": lambda it: f"/jobs/{it.running.uid}",
    "failed job": lambda it: f"/jobs/{it.failed.uid}",
    "succeeded job": lambda it: f"/jobs/{it.succeeded.uid}",
    "script job": lambda it: f"/jobs/{it.script.uid}",
    "log of a job": lambda it: f"/jobs/{it.running.uid}?tab=log",
    "search in a log": lambda it: f"/jobs/{it.succeeded.uid}?tab=log&q=step",
    "events of a job": lambda it: f"/jobs/{it.failed.uid}?tab=events",
    "specification of a job": lambda it: f"/jobs/{it.running.uid}?tab=spec",
    "rendering of a job": lambda it: f"/jobs/{it.running.uid}?tab=rendered",
    "clone of a job": lambda it: f"/jobs/new/finetune?clone={it.failed.uid}",
    "comparison of one run": lambda it: f"/jobs/compare?job={it.failed.uid}",
    "comparison of runs": lambda it: (
        f"/jobs/compare?job={it.failed.uid}&job={it.succeeded.uid}&job={it.running.uid}"
    ),
    "files of a job": lambda it: f"/jobs/{it.script.uid}/files",
    "running pipeline": lambda it: f"/pipelines/{it.pipeline.uid}",
    "held pipeline": lambda it: f"/pipelines/{it.held.uid}",
    "events of a pipeline": lambda it: f"/pipelines/{it.held.uid}?tab=events",
    "clone of a pipeline": lambda it: f"/pipelines/new?clone={it.held.uid}",
    "ready deployment": lambda it: f"/deployments/{it.ready.uid}",
    "degraded deployment": lambda it: f"/deployments/{it.degraded.uid}",
    "calls of a deployment": lambda it: f"/deployments/{it.ready.uid}?tab=calls",
    "revisions of a deployment": lambda it: f"/deployments/{it.ready.uid}?tab=revisions",
    "events of a deployment": lambda it: f"/deployments/{it.degraded.uid}?tab=events",
    "log of a deployment": lambda it: f"/deployments/{it.degraded.uid}?tab=log",
    "key": lambda it: f"/keys/{it.key.uid}",
    "news of a key": lambda it: f"/keys/{it.key.uid}/heard",
    "new revision": lambda it: f"/deployments/{it.ready.uid}/revise",
}


class Inspector(HTMLParser):
    """Notes what a strict content security policy would block, and what a page lacks."""

    def __init__(self) -> None:
        super().__init__()
        self.blocked: list[str] = []
        self.headings = 0
        self.titles: list[str] = []
        self.ids: list[str] = []
        self.labelled: set[str] = set()
        self.inputs: list[dict[str, str | None]] = []
        self._inside: list[str] = []
        self._wrapped = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        for name in given:
            if name == "style" or name.startswith("on"):
                self.blocked.append(f"<{tag} {name}=…>")
        # Data for a script is none: nothing runs it.
        runs = tag == "script" and given.get("type") != "application/json"
        if tag == "style" or (runs and "src" not in given):
            self.blocked.append(f"<{tag}>")
        self.headings += tag == "h1"
        if given.get("id"):
            self.ids.append(str(given["id"]))
        if tag == "label":
            self._wrapped += 1
            self.labelled.add(str(given.get("for")))
        if tag in ("input", "select", "textarea") and given.get("type") != "hidden":
            self.inputs.append({**given, "wrapped": "yes" if self._wrapped else None})

    def handle_endtag(self, tag: str) -> None:
        if tag == "label":
            self._wrapped -= 1

    @property
    def unlabelled(self) -> list[str]:
        return [
            str(one.get("name"))
            for one in self.inputs
            if not one["wrapped"]
            and one.get("id") not in self.labelled
            and not one.get("aria-label")
        ]


def inspect(text: str) -> Inspector:
    inspector = Inspector()
    inspector.feed(text)
    return inspector


def check(text: str) -> None:
    found = inspect(text)
    assert found.blocked == []
    assert found.headings == 1
    assert found.unlabelled == []
    repeated = {one for one in found.ids if found.ids.count(one) > 1}
    assert repeated == set()
    assert "{%" not in text
    assert "{{" not in text


@for_each_case("address", PLAIN)
def test_a_page_renders_before_anything_was_made(browser: Client, address: str) -> None:
    response = browser.get(address)
    assert response.status_code == 200
    check(response.text)


# One company for all pages of a test: making it takes longer than showing them.
@pytest.mark.slow
def test_a_page_of_many_things_renders_within_its_queries(
    browser: Client,
    filled: FilledCompany,
    django_assert_max_num_queries: DjangoAssertNumQueries,
    subtests: pytest.Subtests,
) -> None:
    for address, name in PLAIN.items():
        with subtests.test(name):
            renders_within_its_queries(browser, address, django_assert_max_num_queries)


@pytest.mark.slow
def test_a_page_of_one_thing_renders_within_its_queries(
    browser: Client,
    filled: FilledCompany,
    django_assert_max_num_queries: DjangoAssertNumQueries,
    subtests: pytest.Subtests,
) -> None:
    for kind, address in {**OF_ONE, **OF_ALL}.items():
        with subtests.test(kind):
            renders_within_its_queries(browser, address(filled), django_assert_max_num_queries)


def renders_within_its_queries(
    browser: Client, address: str, at_most: DjangoAssertNumQueries
) -> None:
    browser.get(address)
    with at_most(MOST_QUERIES):
        response = browser.get(address)
    assert response.status_code == 200
    check(response.text)


def test_another_teams_thing_is_not_there(
    filled: FilledCompany, outsider: Client, subtests: pytest.Subtests
) -> None:
    for kind, address in OF_ONE.items():
        with subtests.test(kind):
            assert outsider.get(address(filled)).status_code == 404


@for_each_case("address", PLAIN)
def test_a_page_asks_for_a_log_in_first(client: Client, empty: EmptyCompany, address: str) -> None:
    response = client.get(address)
    assert response.status_code == 302
    assert response["Location"].startswith("/login?next=")


@pytest.mark.parametrize("address", ["/login", "/nothing-here"])
def test_pages_for_strangers_keep_the_policy_too(
    client: Client, empty: EmptyCompany, address: str
) -> None:
    response = client.get(address)
    check(response.text)
    assert "script-src 'self'" in response["Content-Security-Policy"]


def test_the_policy_allows_nothing_inline(browser: Client, empty: EmptyCompany) -> None:
    policy = browser.get("/")["Content-Security-Policy"]
    assert "unsafe" not in policy
