"""What need not wait for the disk is one transaction alone."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from controlplane.persistence.transactions import commit_asynchronously


def synchronous() -> bool:
    """Whether a commit would wait for the disk."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        (setting,) = cursor.fetchone()
    return bool(setting == "on")


@pytest.mark.django_db(transaction=True)
def test_asynchronous_commit_applies_to_one_transaction() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = on")
    try:
        with transaction.atomic():
            assert synchronous()
            commit_asynchronously()
            assert not synchronous()
        assert synchronous()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET synchronous_commit")


@pytest.mark.django_db(transaction=True)
def test_asynchronous_commit_needs_a_transaction() -> None:
    with pytest.raises(RuntimeError, match="inside a transaction"):
        commit_asynchronously()
