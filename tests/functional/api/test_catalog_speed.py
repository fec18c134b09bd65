"""The catalog costs three queries, and a third of what a plain list of the same rows costs."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIClient, APIRequestFactory, force_authenticate

from apps.models.models import CatalogCell, CatalogModel
from apps.models.selectors import catalog as selectors
from apps.models.services.catalog import catalog_load
from tests.benchmarks.catalog import LEAST_TIMES_FASTER, MOST_QUERIES, keep, measure
from tests.integration.company import Company


class PlainCellSerializer(serializers.ModelSerializer[CatalogCell]):
    class Meta:
        model = CatalogCell
        exclude: ClassVar[tuple[str, ...]] = ("id", "model")


class PlainSerializer(serializers.ModelSerializer[CatalogModel]):
    cells = PlainCellSerializer(many=True)

    class Meta:
        model = CatalogModel
        exclude: ClassVar[tuple[str, ...]] = ("id", "digest", "withdrawn_at")


class PlainList(generics.ListAPIView[CatalogModel]):
    queryset = CatalogModel.objects.prefetch_related("cells")
    serializer_class = PlainSerializer
    pagination_class = None

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return self.list(request, *args, **kwargs)


@pytest.fixture
def plain(company: Company) -> Any:
    """Asks the plain list, without a middleware in its way."""
    view = PlainList.as_view()

    def send() -> Response:
        request = APIRequestFactory().get("/plain")
        force_authenticate(request, user=company.engineer)
        answer: Response = view(request)
        answer.render()
        return answer

    return send


@pytest.mark.slow
def test_the_catalog_is_three_times_as_fast_as_a_plain_list_of_the_same_rows(
    engineer: APIClient, company: Company, plain: Any
) -> None:
    catalog_load(catalog=selectors.published_catalog(), at=timezone.now())
    browser = Client()
    browser.force_login(company.engineer)
    listed = {entry["key"]: entry for entry in engineer.get("/api/v1/catalog").json()}
    assert {row["key"]: row["layers"] for row in plain().data} == {
        key: entry["layers"] for key, entry in listed.items()
    }
    rows = measure(
        {
            "plain DRF list": plain,
            "REST list": lambda: engineer.get("/api/v1/catalog"),
            "page": lambda: browser.get("/models/catalog"),
            "page, narrowed": lambda: browser.get("/models/catalog?modality=llm&train=ascend"),
            "its list alone (htmx)": lambda: browser.get(
                "/models/catalog?q=qwen", headers={"HX-Request": "true"}
            ),
        }
    )
    base = rows[0]
    keep(rows, plain=base)
    for row in rows[1:]:
        assert row.queries <= MOST_QUERIES, row
        assert base.milliseconds >= LEAST_TIMES_FASTER * row.milliseconds, (base, row)
