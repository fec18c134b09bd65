"""Lineage: from rows to deployments, as a picture and as a list; nothing leaks."""

from __future__ import annotations

import re
from typing import Any

from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.console.selectors.lineage import MAX_VERSIONS, lineage_of_versions
from apps.models.models import ModelLine, ModelVersion
from apps.models.services import job_outputs
from tests import factories
from tests.functional.sample_rows import FilledCompany


def names(drawing: Any) -> list[str]:
    return [box.node.name for box in drawing.boxes]


def child(filled: FilledCompany, base: ModelVersion | None, number: int) -> ModelVersion:
    origin = job_outputs.OutputOrigin(
        team=filled.team, actor=filled.user, job_uid="", attempt_uid=f"child-{number}"
    )
    return job_outputs.model_version_register(
        origin=origin,
        name=f"child-{number}",
        files=factories.model_files(),
        base=base,
        dataset_version=None,
        metrics={},
    )


def test_a_version_shows_its_way_from_rows_to_deployment(
    browser: Client, filled: FilledCompany
) -> None:
    page = browser.get(f"/models/versions/{filled.tuned.uid}?tab=lineage")
    drawing = page.context["drawing"]
    shown = [box.node.uid for box in drawing.boxes]
    assert filled.base.uid in shown
    way = (filled.dataset, filled.succeeded, filled.tuned, filled.ready)
    places = [shown.index(one.uid) for one in way]
    assert places == sorted(places)
    assert [box.node.uid for box in drawing.boxes if box.here] == [filled.tuned.uid]
    for address in (
        f"/datasets/versions/{filled.dataset.uid}",
        f"/jobs/{filled.succeeded.uid}",
        f"/deployments/{filled.ready.uid}",
    ):
        # In the picture, and in the list below everything that it was made from.
        assert page.text.count(f'href="{address}"') >= 2


def test_a_line_and_a_dataset_have_theirs_too(browser: Client, filled: FilledCompany) -> None:
    line = browser.get(f"/models/{filled.base.line.uid}?tab=lineage").context["drawing"]
    assert {str(filled.base), str(filled.tuned)} <= set(names(line))
    data = browser.get(f"/datasets/versions/{filled.dataset.uid}/lineage").context["drawing"]
    # Jobs that read it are there, whatever became of them.
    assert {"went well", "ran out of disk", "teach addresses", "needs many"} <= set(names(data))
    assert [box.node.name for box in data.boxes if box.here] == [str(filled.dataset)]


def test_a_dataset_that_nobody_used_stands_alone(browser: Client, filled: FilledCompany) -> None:
    fresh = factories.dataset_version(actor=filled.user, team=filled.team, name="fresh", rows=12)
    drawing = browser.get(f"/datasets/versions/{fresh.uid}/lineage").context["drawing"]
    assert names(drawing) == [str(fresh)]


def test_a_long_way_is_shown_step_by_step(browser: Client, filled: FilledCompany) -> None:
    version: ModelVersion | None = None
    for number in range(6):
        version = child(filled, version, number)
    assert version is not None
    address = f"/models/versions/{version.uid}?tab=lineage"
    first = browser.get(address).context["drawing"]
    assert "child-0 v1" not in names(first)
    assert first.deeper
    whole = browser.get(f"{address}&depth={first.deeper}").context["drawing"]
    assert "child-0 v1" in names(whole)
    assert whole.deeper == 0
    assert browser.get(f"{address}&depth=nonsense").status_code == 200


def test_any_lineage_takes_the_same_few_queries(
    filled: FilledCompany, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(MAX_VERSIONS + 5):
        child(filled, filled.base, number)
    with django_assert_max_num_queries(4):
        found = lineage_of_versions([filled.base.pk], user=filled.user)
    assert found.more
    models = [node for node in found.nodes if node.kind == "model"]
    assert len(models) == MAX_VERSIONS
    assert filled.base.uid in {node.uid for node in models}


def test_what_another_team_has_is_neither_drawn_nor_passed_through(
    outsider: Client, filled: FilledCompany
) -> None:
    ModelLine.objects.filter(pk=filled.base.line_id).update(team=None)
    page = outsider.get(f"/models/versions/{filled.base.uid}?tab=lineage")
    drawing = page.context["drawing"]
    assert names(drawing) == [str(filled.base)]
    # Something of everybody's, made from what is hidden: the way to it leads through the hidden.
    created = child(filled, filled.tuned, 1)
    ModelLine.objects.filter(pk=created.line_id).update(team=None)
    page = outsider.get(f"/models/versions/{created.uid}?tab=lineage")
    assert names(page.context["drawing"]) == [str(created)]
    for hidden in (filled.tuned.uid, filled.succeeded.uid, filled.dataset.uid, "parcels"):
        assert hidden not in page.text


def test_the_picture_is_read_in_order_and_has_no_inline_style(
    browser: Client, filled: FilledCompany
) -> None:
    text = browser.get(f"/models/versions/{filled.tuned.uid}?tab=lineage").text
    picture = text[text.index("<svg width") : text.index("</svg>\n  </div>")]
    places = [int(x) for x in re.findall(r'<foreignObject x="(\d+)"', picture)]
    assert places == sorted(places)
    assert "style=" not in picture
    assert 'aria-current="true"' in picture
