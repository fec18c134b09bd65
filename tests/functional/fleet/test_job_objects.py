"""The tab of a job that shows what stands for it on its cluster."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from apps.fleet.models import Cluster
from apps.jobs.models import Attempt
from apps.jobs.reconcilers import launches
from apps.quotas.models import Claim
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.ports.clusters import ClusterEvent, ClusterObject
from tests.functional.fleet.conftest import text
from tests.functional.fleet.test_removing import worked

__all__ = ["worked"]


@pytest.fixture
def address(worked: Attempt) -> str:
    return f"/jobs/{worked.job.uid}"


def test_objects_and_events_come_after_the_page(
    browser: Client, worked: Attempt, address: str, fake: FakeCluster
) -> None:
    fake.set_launch_objects(
        worked.launch_name,
        objects=[
            ClusterObject(
                kind="Pod", namespace="ninefold-maps", name="pod-0", text="kind: Pod\nspec: {}"
            )
        ],
        events=[
            ClusterEvent(
                at=timezone.now(),
                warning=True,
                reason="FailedScheduling",
                message="0/3 nodes are available",
                about="pod/pod-0",
            )
        ],
    )

    page = text(browser, f"{address}?tab=cluster")
    assert 'hx-trigger="load"' in page
    assert "FailedScheduling" not in page

    fragment = text(browser, f"{address}?tab=cluster&asked=1", HX_Request="true")
    assert "<html" not in fragment
    assert "kind: Pod" in fragment
    assert "0/3 nodes are available" in fragment
    assert "kind: Pod" in text(browser, f"{address}?tab=cluster&asked=1")


def test_a_cluster_that_does_not_answer_breaks_nothing(
    browser: Client, address: str, fake: FakeCluster
) -> None:
    fake.lose_contact()
    shown = text(browser, f"{address}?tab=cluster&asked=1")
    assert "has lost contact" in shown
    assert "The job is not affected" in shown


def test_the_tab_is_there_only_where_a_cluster_has_something_to_show(
    browser: Client, address: str
) -> None:
    tab = f'href="{address}?tab=cluster"'
    assert tab in text(browser, address)
    assert tab in text(browser, f"{address}/files")
    Cluster.objects.update(kind="local")
    assert tab not in text(browser, address)
    assert "No cluster objects" in text(browser, f"{address}?tab=cluster")


def test_an_attempt_reports_where_its_cluster_reaches_the_product(
    worked: Attempt, cluster: Cluster
) -> None:
    def reported() -> str:
        attempt = Attempt.objects.get(pk=worked.pk)
        launch = launches.render_launch(attempt, claim=Claim.objects.get(uid=attempt.claim_uid))
        return launch.roles[0].environment["NINEFOLD_REPORT_URL"]

    here = str(settings.NINEFOLD_CONTROL_URL)
    assert reported() == f"{here}/api/v1/attempts/{worked.uid}"
    Cluster.objects.update(options={"control_url": "https://control.example.com/"})
    assert reported() == f"https://control.example.com/api/v1/attempts/{worked.uid}"
