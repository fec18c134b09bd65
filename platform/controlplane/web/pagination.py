"""Keyset pagination of REST lists: every page costs the same, and nothing is counted."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request
from rest_framework.views import APIView

#: Largest value of a primary key.
_LARGEST_KEY = 2**63 - 1


def _parse_primary_key(text: str) -> int | None:
    """Return the number if it fits a primary key; very long digit strings are not parsed."""
    if not text.isdecimal() or len(text) > len(str(_LARGEST_KEY)):
        return None
    number = int(text)
    return number if number <= _LARGEST_KEY else None


class KeysetPagination(CursorPagination):
    """Newest first, by primary key; ``?cursor=`` from ``next`` and ``previous``, ``?page_size=`` up to 200.

    Rows that are added while somebody pages neither repeat nor hide a row.
    """

    ordering = "-id"
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200

    #: Query parameters that belong to paging.
    parameters = frozenset({"cursor", "page_size"})

    def get_page_size(self, request: Request) -> int | None:
        page_size = request.query_params.get("page_size")
        if page_size is None:
            return self.page_size
        if _parse_primary_key(page_size) not in range(1, self.max_page_size + 1):
            message = (
                f"must be a whole number from 1 to {self.max_page_size}, got {page_size[:40]!r}"
            )
            raise ValidationError({"page_size": [message]})
        return int(page_size)

    def decode_cursor(self, request: Request) -> Cursor | None:
        try:
            cursor = super().decode_cursor(request)
        except NotFound:
            raise self._invalid_cursor() from None
        if cursor is None or cursor.position is None:
            return cursor
        if _parse_primary_key(str(cursor.position)) is None:
            raise self._invalid_cursor()
        return cursor

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        """As ``get_page_size`` reads them."""
        parameters = super().get_schema_operation_parameters(view)
        for parameter in parameters:
            if parameter["name"] == self.page_size_query_param:
                parameter["schema"] = {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": self.max_page_size,
                    "default": self.page_size,
                }
        return parameters

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A page; its links lead to the address that was asked."""
        link = {"type": ["string", "null"], "format": "uri"}
        properties = {"next": link, "previous": link, "results": schema}
        return {"type": "object", "required": [*properties], "properties": properties}

    def _invalid_cursor(self) -> ValidationError:
        return ValidationError({"cursor": ["take it from next or previous of an earlier page"]})
