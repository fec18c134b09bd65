"""What need not wait for the disk is one transaction alone."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from controlplane.persistence.durability import commit_soon


def waits() -> bool:
    """Whether a commit would wait for the disk."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        (setting,) = cursor.fetchone()
    return bool(setting == "on")


@pytest.mark.django_db(transaction=True)
def test_one_transaction_does_not_wait_and_the_next_one_does_again() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = on")
    try:
        with transaction.atomic():
            assert waits()
            commit_soon()
            assert not waits()
        assert waits()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET synchronous_commit")


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_it_would_be_of_none() -> None:
    with pytest.raises(RuntimeError, match="inside a transaction"):
        commit_soon()
