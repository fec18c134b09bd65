"""Pages of chips: what is known, what is not, and what a fault code asks for."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.fleet.models import Card, Node
from apps.fleet.web import peak_rates, spec_values
from controlplane.ports import adapter_registry
from tests import factories
from tests.cases import for_each_case
from tests.functional.sample_rows import EmptyCompany, FilledCompany


@pytest.fixture
def browser(empty: EmptyCompany, client: Client) -> Client:
    client.force_login(empty.user)
    return client


def page(browser: Client, path: str) -> str:
    answer = browser.get(path)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_the_list_has_every_chip_of_every_plug_in(browser: Client) -> None:
    shown = page(browser, "/fleet/chips")
    for name, chip in adapter_registry.all_chips().items():
        assert (f'href="/fleet/chips/{name}"' in shown) is not bool(chip.slice_of)


def test_slices_are_listed_once_the_fleet_has_some(browser: Client) -> None:
    node = Node.objects.create(cluster=factories.cluster(), name="divided")
    Card.objects.create(node=node, index=9, chip="nvidia-h800-mig-1g-10gb")
    shown = page(browser, "/fleet/chips")
    assert 'href="/fleet/chips/nvidia-h800-mig-1g-10gb"' in shown
    assert 'href="/fleet/chips/nvidia-h800-mig-2g-20gb"' not in shown


def test_what_the_fleet_has_stands_first_with_its_cards(browser: Client) -> None:
    factories.cluster(cards=3)
    shown = page(browser, "/fleet/chips")
    assert shown.index('href="/fleet/chips/cpu"') < shown.index('href="/fleet/chips/nvidia-h800"')
    assert "3 of 3 available" in shown


@for_each_case(
    ("query", "there", "absent"),
    [
        ("text=910B3", "ascend-910b3", "nvidia-h800"),
        ("text=nvidia-h800", "nvidia-h800", "ascend-910b3"),
        ("vendor=cambricon", "cambricon-mlu590", "nvidia-h800"),
        ("kind=npu", "ascend-910b3", "nvidia-h800"),
        ("here=on", "/fleet/chips/cpu", "nvidia-h800"),
    ],
)
def test_filters_narrow_the_list(browser: Client, query: str, there: str, absent: str) -> None:
    factories.cluster()
    shown = page(browser, f"/fleet/chips?{query}")
    assert there in shown
    assert f"/fleet/chips/{absent}" not in shown


def test_a_filter_that_matches_nothing_says_so_and_a_wrong_one_is_left_out(browser: Client) -> None:
    assert "No matching chips" in page(browser, "/fleet/chips?text=zzz")
    assert "ignored" in page(browser, "/fleet/chips?vendor=nobody")


def test_the_list_asks_the_database_little(
    browser: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    page(browser, "/fleet/chips")
    with django_assert_max_num_queries(12):
        page(browser, "/fleet/chips")


@for_each_case("name", sorted(adapter_registry.all_chips()))
def test_every_chip_has_a_page_that_says_how_well_it_is_known(browser: Client, name: str) -> None:
    chip = adapter_registry.all_chips()[name]
    shown = page(browser, f"/fleet/chips/{name}")
    run = adapter_registry.plugin_of_chip(chip).profile().run_on_hardware
    assert ("Not run on hardware" in shown) is not run
    marks = sum(value.unverified for value in [*spec_values(chip), *peak_rates(chip)])
    exporter = adapter_registry.plugin_of_chip(chip).profile().exporter
    assert shown.count(">unverified<") == marks + bool(exporter and not exporter.verified)
    for source in chip.sources:
        assert source.split(":")[0].split("(")[0].strip() in shown


def test_a_page_shows_rings_sizes_names_and_variables(browser: Client) -> None:
    shown = page(browser, "/fleet/chips/ascend-910a")
    assert "1, 2, 4, 8" in shown
    assert shown.count('<ul class="nf-rings">') >= 1
    assert "ASCEND_RT_VISIBLE_DEVICES=0,1" in shown
    assert "910proa" in shown
    assert "npu_chip_info_hbm_used_memory" in shown


def test_another_name_leads_to_the_chip_and_an_unknown_one_nowhere(browser: Client) -> None:
    assert browser.get("/fleet/chips/910B3")["Location"] == "/fleet/chips/ascend-910b3"
    assert browser.get("/fleet/chips/tpu-v9").status_code == 404
    assert browser.get("/api/v1/chips/tpu-v9").status_code == 404
    assert browser.get("/api/v1/chips/910B3").json()["name"] == "ascend-910b3"


@for_each_case(
    ("path", "said"),
    [
        ("nvidia-h800?code=79", "L6 · isolate the card"),
        ("nvidia-h800?code=13", "L3 · restart the job"),
        ("nvidia-h800?code=4711", "table: the card is isolated unless"),
        ("ascend-910b3?code=0x80e18402", "L6 · isolate the card"),
        ("ascend-910b3?code=%3Cscript%3E", "&lt;script&gt;"),
    ],
)
def test_a_fault_code_is_looked_up(browser: Client, path: str, said: str) -> None:
    assert said in page(browser, f"/fleet/chips/{path}")


def test_the_fleet_leads_to_its_chips(filled: FilledCompany, client: Client) -> None:
    client.force_login(filled.user)
    assert 'href="/fleet/chips"' in page(client, "/fleet")
