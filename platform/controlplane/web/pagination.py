"""Keyset pagination: every page costs the same, and nothing is counted."""

from __future__ import annotations

from rest_framework.pagination import CursorPagination


class KeysetPagination(CursorPagination):
    """Newest first, by primary key; ``?cursor=`` from ``next`` and ``previous``, ``?page_size=`` up to 200."""

    ordering = "-id"
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200
