"""What one team sees stays the same when another arrives: counts, choices and cursors included."""

from __future__ import annotations

from unittest import mock

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from tests import factories
from tests.functional.roles import team_data
from tests.functional.roles.permission_table import PAGES, REST
from tests.functional.roles.role_requests import difference, normalized, send_request, text_of

pytestmark = pytest.mark.slow

#: What everybody shares changes with whoever uses it.
COMPANYS = (
    "/fleet",
    "/queues",
    "/claims",
    "/topology",
    "/api/v1/claims",
    "/api/v1/topology",
    "/status",
    "/api/v1/queues",
    "/api/v1/cards",
    "/api/v1/nodes",
    "/api/v1/usage",
)


def test_pages_stay_the_same_when_another_team_arrives(db: None) -> None:
    """Counts, choices and cursors included. The clock stands still for it."""
    with mock.patch("django.utils.timezone.now", return_value=timezone.now()):
        company = team_data.shared()
        own = team_data.side("maps", company)
        names = {**own.names, **company.names, **team_data.company_names()}
        rows = [one for one in (*REST, *PAGES) if one.method == "GET"]
        rows = [row for row in rows if not row.path.startswith(COMPANYS)]
        client = Client()
        client.force_login(User.objects.get(uid=own.names["person.engineer"]))
        # Once to have looked: opening a notification is reading it.
        for row in rows:
            text_of(send_request(client, row, names))
        before = {str(row): normalized(text_of(send_request(client, row, names))) for row in rows}
        team_data.side(team_data.MARK, company)
        factories.schedule()
        after = {str(row): normalized(text_of(send_request(client, row, names))) for row in rows}
    differing = [
        "\n".join((row, *difference(text, after[row])))
        for row, text in before.items()
        if after[row] != text
    ]
    assert not differing, "\n".join(differing)
