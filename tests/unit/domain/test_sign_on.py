"""What a provider says about somebody, and what that grants."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.domain.accounts.single_sign_on import (
    GroupGrant,
    SsoClaimsRefused,
    SsoProvider,
    grants_administration,
    identity_from_claims,
    parse_groups,
    roles_granted,
)
from controlplane.domain.common.permissions import TeamRole

PROVIDER = SsoProvider(
    issuer="https://id.acme.example",
    client_id="ninefold",
    client_secret="s",
    groups=parse_groups(
        '{"ml": "maps:engineer", "leads": ["maps:administrator", "search:viewer"]}'
    ),
    admin_group="root",
)
CLAIMS: dict[str, Any] = {"sub": "1", "preferred_username": " mei "}


def test_groups_are_read_as_one_or_several_roles() -> None:
    assert PROVIDER.groups == (
        GroupGrant(group="ml", team="maps", role=TeamRole.ENGINEER),
        GroupGrant(group="leads", team="maps", role=TeamRole.ADMINISTRATOR),
        GroupGrant(group="leads", team="search", role=TeamRole.VIEWER),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "must be a JSON object"),
        ('{"ml": "maps"}', "group 'ml' must map to team:role, got 'maps'"),
        ('{"ml": ":viewer"}', "must map to team:role, got ':viewer'"),
        ('{"ml": "maps:boss"}', "the role 'boss'; known are viewer, engineer"),
        ('{"ml": 7}', "must map to team:role, got 7"),
    ],
)
def test_a_mapping_that_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_groups(text)


def test_roles_of_several_groups_add_up() -> None:
    assert roles_granted(PROVIDER, frozenset({"ml", "leads", "other"})) == {
        "maps": frozenset({TeamRole.ENGINEER, TeamRole.ADMINISTRATOR}),
        "search": frozenset({TeamRole.VIEWER}),
    }
    assert roles_granted(PROVIDER, frozenset()) == {}


@pytest.mark.parametrize(
    ("said", "groups"),
    [
        (["ml", 7, None], {"ml"}),
        ("ml", {"ml"}),
        (None, set()),
        ({"ml": True}, set()),
    ],
)
def test_groups_come_as_a_list_or_one_name_and_anything_else_is_none(
    said: object, groups: set[str]
) -> None:
    assert identity_from_claims({**CLAIMS, "groups": said}, provider=PROVIDER).groups == groups


@pytest.mark.parametrize(
    ("verified", "email"),
    [(True, "a@b.example"), ("true", "a@b.example"), (False, ""), (None, ""), ("yes", "")],
)
def test_an_address_counts_only_where_it_is_verified(verified: object, email: str) -> None:
    claims = {**CLAIMS, "email": "a@b.example", "email_verified": verified}
    assert identity_from_claims(claims, provider=PROVIDER).email == email


@pytest.mark.parametrize("missing", ["sub", "preferred_username"])
@pytest.mark.parametrize("value", [None, "", 7])
def test_without_subject_or_user_name_nobody_comes_in(missing: str, value: object) -> None:
    with pytest.raises(SsoClaimsRefused):
        identity_from_claims({**CLAIMS, missing: value}, provider=PROVIDER)


def test_nobody_administers_the_company_because_of_a_group_that_is_not_named() -> None:
    unnamed = SsoProvider(issuer="i", client_id="c", client_secret="s")
    assert not grants_administration(unnamed, frozenset({""}))
    assert grants_administration(PROVIDER, frozenset({"root"}))
