"""What recording an inventory writes and waits for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from apps.fleet import services
from apps.fleet.models import Card, Cluster, Node
from controlplane.domain.common.resources import Bytes, Millicpu, Resources
from controlplane.ports.clusters import ObservedCard, ObservedNode
from tests.contract.waiting import until
from tests.integration.accounts.test_concurrency import a_lock_is_awaited
from tests.integration.company import Company
from tests.integration.threads import PATIENCE

NODES = ("n1", "n2", "n3")


def nodes(*names: str, cpu: int = 2000) -> list[ObservedNode]:
    return [
        ObservedNode(
            name=name,
            cards=tuple(ObservedCard(index=index, chip="cpu") for index in range(2)),
            capacity=Resources(cpu=Millicpu(cpu), memory=Bytes(1 << 30)),
        )
        for name in names
    ]


def record(company: Company, cluster: Cluster, seen: list[ObservedNode]) -> None:
    at = company.at + timedelta(seconds=30)
    services.inventory_record(cluster=cluster, nodes=seen, isolation="", at=at)


def test_an_unchanged_inventory_only_updates_last_seen(
    company: Company,
) -> None:
    cluster = Cluster.objects.create(name="east", kind="fake")
    record(company, cluster, nodes(*NODES))

    with CaptureQueriesContext(connection) as said:
        record(company, cluster, nodes(*NODES))

    statements = [query["sql"] for query in said.captured_queries]
    written = [sql for sql in statements if sql.startswith(("UPDATE", "INSERT"))]
    assert len(statements) <= 10, statements
    assert [sql.split(" ")[1] for sql in written].count('"fleet_node"') == 1
    assert not [sql for sql in written if sql.startswith('UPDATE "fleet_card"')]


def test_an_admission_that_holds_cards_comes_to_their_node_while_an_inventory_waits(
    committed_company: Company,
) -> None:
    company = committed_company
    cluster = Cluster.objects.create(name="east", kind="fake")
    record(company, cluster, nodes("n1"))
    node = Node.objects.get(cluster=cluster)

    def follow() -> None:
        try:
            record(company, cluster, nodes("n1", cpu=4000))
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=1) as pool:
        with transaction.atomic():
            list(Card.objects.select_for_update(no_key=True).filter(node=node).order_by("uid"))
            following = pool.submit(follow)
            until(a_lock_is_awaited, what="the inventory waits for the admission")
            with connection.cursor() as cursor:
                # As the foreign key of an allocation does.
                cursor.execute("SELECT 1 FROM fleet_node WHERE id = %s FOR KEY SHARE", [node.pk])
        assert following.exception(timeout=PATIENCE) is None

    node.refresh_from_db()
    assert node.cpu == 4000
