"""Lists: order, paging, filters and CSV, over real rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from django import forms
from django.contrib.auth import get_user_model
from django.core import signing
from django.db.models import Model, QuerySet
from django.test import RequestFactory
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from controlplane.outbox.models import OutboxMessage
from controlplane.web import tables
from controlplane.web.tables import FilterForm, ListTable, TableColumn
from tests.cases import for_each_case

COLUMNS = (
    TableColumn(key="id", label="Number", sort="pk", numeric=True),
    TableColumn(key="topic", label="Topic", sort="topic"),
    TableColumn(key="delivered_at", label="Delivered", sort="delivered_at"),
    TableColumn(key="payload", label="Payload", csv=lambda row: row.payload.get("text")),
    TableColumn(key="buttons", label=""),
)


class TopicFilter(FilterForm):
    topic = forms.ChoiceField(label="Topic", choices=[(name, name) for name in "abc"])
    before = forms.DateField(label="Before")
    delivered = forms.BooleanField(label="Delivered")
    lookups: ClassVar[Mapping[str, str]] = {"topic": "topic", "before": "created_at__lt"}

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        rows = super().apply(rows)
        return rows.exclude(delivered_at=None) if self.chosen("delivered") else rows


@pytest.fixture
def messages(db: None) -> list[OutboxMessage]:
    """Twelve rows: topics repeat, and every second one was delivered, two of them at the same moment."""
    now = timezone.now()
    return [
        OutboxMessage.objects.create(
            topic="abc"[number % 3],
            payload={"text": f"news {number}"},
            delivered_at=now.replace(microsecond=number // 4) if number % 2 else None,
        )
        for number in range(12)
    ]


def table(address: str = "/", **options: Any) -> ListTable[OutboxMessage]:
    rows = options.pop("rows", OutboxMessage.objects.all())
    return ListTable(RequestFactory().get(address), rows, columns=COLUMNS, **options)


def walk(address: str, **options: Any) -> list[list[int]]:
    """Primary keys, page by page, to the last."""
    pages = []
    for _ in range(20):
        one = table(address, **options)
        pages.append([row.pk for row in one.rows])
        if not one.next_href:
            return pages
        address = f"/{one.next_href}"
    raise AssertionError("the pages do not end")


def test_the_newest_row_comes_first(messages: list[OutboxMessage]) -> None:
    assert table().rows == messages[::-1]


@pytest.mark.parametrize("order", ["id", "-id", "topic", "-topic", "delivered_at", "-delivered_at"])
@pytest.mark.parametrize("size", [1, 5, 12])
def test_pages_hold_every_row_once_whatever_they_are_ordered_by(
    messages: list[OutboxMessage], order: str, size: int
) -> None:
    whole = [row.pk for row in table(f"/?sort={order}", size=100).rows]
    pages = walk(f"/?sort={order}", size=size)
    assert [key for page in pages for key in page] == whole
    assert sorted(whole) == [row.pk for row in messages]
    assert all(len(page) == size for page in pages[:-1])


@pytest.mark.parametrize("order", ["delivered_at", "-delivered_at"])
def test_rows_without_a_value_come_last_either_way(
    messages: list[OutboxMessage], order: str
) -> None:
    delivered = [row.delivered_at for row in table(f"/?sort={order}").rows]
    assert delivered.index(None) == 6
    assert set(delivered[6:]) == {None}


def test_a_row_made_meanwhile_neither_repeats_nor_hides_another(
    messages: list[OutboxMessage],
) -> None:
    first = table(size=5)
    seen = [row.pk for row in first.rows]
    OutboxMessage.objects.create(topic="a", payload={})
    second = table(f"/{first.next_href}", size=5)
    assert [*seen, *(row.pk for row in second.rows)] == [row.pk for row in messages[:1:-1]]


@pytest.mark.parametrize("after", ["nonsense", "a:b:c", "%00", "0" * 3000])
def test_a_cursor_that_nobody_gave_shows_the_first_page(
    messages: list[OutboxMessage], after: str
) -> None:
    assert table(f"/?after={after}").rows[0] == messages[-1]


def test_a_cursor_cannot_be_forged(messages: list[OutboxMessage]) -> None:
    forged = signing.dumps(["-created_at", "", None, 3], key="somebody else's", salt="table")
    assert table(f"/?after={forged}").first_href == ""


def test_a_cursor_of_another_order_shows_the_first_page(messages: list[OutboxMessage]) -> None:
    by_topic = table("/?sort=topic", size=5).next_href
    other = by_topic.replace("sort=topic", "sort=-id")
    assert table(f"/{other}", size=5).rows == messages[::-1][:5]


def test_an_order_that_is_not_there_is_left_out_with_a_hint(messages: list[OutboxMessage]) -> None:
    one = table("/?sort=password")
    assert one.rows == messages[::-1]
    assert ["password" in hint for hint in one.ignored] == [True]


def test_a_heading_says_how_the_rows_are_ordered_and_leads_to_the_reverse(
    messages: list[OutboxMessage],
) -> None:
    headings = {heading.key: heading for heading in table("/?sort=topic&topic=a").columns}
    assert headings["topic"].direction == "ascending"
    assert headings["topic"].href == "?sort=-topic&topic=a"
    assert headings["id"].direction == ""
    assert headings["id"].href == "?sort=-id&topic=a"
    assert headings["payload"].href == ""


def test_filters_narrow_the_rows(messages: list[OutboxMessage]) -> None:
    one = table("/?topic=b", filters=TopicFilter)
    assert {row.topic for row in one.rows} == {"b"}
    assert one.filtered
    assert one.count_text == "4"


def test_what_a_filter_does_by_itself_counts_too(messages: list[OutboxMessage]) -> None:
    assert table("/?delivered=on", filters=TopicFilter).count_text == "6"


def test_a_filter_without_a_value_narrows_nothing(messages: list[OutboxMessage]) -> None:
    one = table("/?topic=&before=", filters=TopicFilter)
    assert len(one.rows) == 12
    assert not one.filtered
    assert one.ignored == []


@for_each_case("wrong", ["topic=zebra", "before=yesterday", "topic=%00"])
def test_a_wrong_value_is_left_out_with_a_hint_and_the_others_hold(
    messages: list[OutboxMessage], wrong: str
) -> None:
    one = table(f"/?delivered=on&{wrong}", filters=TopicFilter)
    assert len(one.rows) == 6
    assert len(one.ignored) == 1


def test_the_form_of_filters_carries_order_and_tab_along_but_no_page(
    messages: list[OutboxMessage],
) -> None:
    one = table("/?sort=topic&tab=events&topic=a&after=x&format=csv", filters=TopicFilter)
    assert one.carried_parameters == [("sort", "topic"), ("tab", "events")]
    assert one.clear_href == "?sort=topic&tab=events&format=csv"


def test_a_saved_query_keeps_filters_and_order_only(messages: list[OutboxMessage]) -> None:
    assert table("/?sort=topic&topic=a&after=x").saved_query == "sort=topic&topic=a"


def test_nothing_is_counted_beyond_a_thousand(
    messages: list[OutboxMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_COUNTED", 10)
    assert table(size=5).count_text == "10+"


def test_one_page_takes_one_query_and_no_count(
    messages: list[OutboxMessage], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        one = table()
        assert (len(one.rows), one.next_href, one.count_text) == (12, "", "12")


def test_the_csv_has_all_matching_rows_whatever_page_was_looked_at(
    messages: list[OutboxMessage],
) -> None:
    one = table("/?topic=c&sort=id&format=csv&after=x", filters=TopicFilter, size=1)
    assert one.is_csv_request
    response = one.csv(filename="news.csv")
    assert response["Content-Disposition"] == 'attachment; filename="news.csv"'
    lines = list(csv.reader(io.StringIO(response.getvalue().decode())))
    assert lines[0] == ["Number", "Topic", "Delivered", "Payload"]
    assert [line[3] for line in lines[1:]] == ["news 2", "news 5", "news 8", "news 11"]


def test_rows_can_be_ordered_by_what_belongs_to_another_row(db: None) -> None:
    users: type[Model] = get_user_model()
    rows = users._default_manager.all()
    columns = [TableColumn(key="username", label="Name", sort="username")]
    for name in ("zoe", "adam", "mia"):
        users._default_manager.create(username=name)
    request = RequestFactory().get("/?sort=username")
    found = ListTable(request, rows, columns=columns, size=2)
    assert [str(row) for row in found.rows] == ["adam", "mia"]
    rest = ListTable(RequestFactory().get(f"/{found.next_href}"), rows, columns=columns, size=2)
    assert [str(row) for row in rest.rows] == ["zoe"]
