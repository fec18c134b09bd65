"""What two change at once about one person: one after the other, and neither fails."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from django.utils import timezone

from apps.accounts import services
from apps.accounts.models import Membership, Team, User
from controlplane.domain.accounts.single_sign_on import SsoIdentity, SsoProvider
from controlplane.domain.common.permissions import TeamRole
from tests import factories
from tests.contract.waiting import until
from tests.integration.threads import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)

ENGINEER = frozenset({TeamRole.ENGINEER})
ACME = SsoProvider(
    issuer="https://acme.example", client_id="ninefold", client_secret="-", name="Acme ID"
)
MEI = SsoIdentity(issuer=ACME.issuer, subject="1", username="mei", email="")


@pytest.fixture
def maps(transactional_db: None) -> Team:
    return factories.team("maps")


@pytest.fixture
def ada(transactional_db: None) -> User:
    return factories.user("ada")


def second_blocked_by_first(
    first: Callable[[], object], second: Callable[[], object]
) -> BaseException | None:
    """What the second raised, which began before the first was committed."""

    def follow() -> None:
        try:
            second()
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=1) as pool:
        with transaction.atomic():
            first()
            following = pool.submit(follow)
            until(a_lock_is_awaited, what="the second waits for the first")
        return following.exception(timeout=PATIENCE)


def a_lock_is_awaited() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks"
            " WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        )
        return bool(cursor.fetchone()[0])


def test_a_role_given_here_while_groups_are_followed_is_held_once(maps: Team, ada: User) -> None:
    raised = second_blocked_by_first(
        lambda: services.membership_set(team=maps, user=ada, roles=ENGINEER, actor=None),
        lambda: services.memberships_sync(user=ada, granted={maps: ENGINEER}, provider="Acme ID"),
    )
    assert raised is None
    (held,) = Membership.objects.filter(user=ada)
    assert (held.role, held.source) == ("engineer", "local")


def test_a_second_user_cannot_link_an_account_that_is_already_linked(ada: User) -> None:
    bob = factories.user("bob")

    def link(user: User) -> None:
        services.identity_link(user=user, identity=MEI, provider=ACME, at=timezone.now())

    raised = second_blocked_by_first(lambda: link(ada), lambda: link(bob))
    assert isinstance(raised, services.SignOnRefused)
    assert "is linked to ada" in str(raised)
    assert not bob.identities.exists()
