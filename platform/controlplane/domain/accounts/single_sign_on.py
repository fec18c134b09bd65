"""Sign-on with the company's OpenID provider: what it says about a person, and what that grants here.

    claims ──identity_from_claims──▶ Identity ──roles_granted──▶ team → roles
                               │
                               └── (issuer, subject): the only thing by which an account is known

Names and e-mail addresses change hands, so neither ever decides whose account it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.domain.common.permissions import CompanyRole, TeamRole
from controlplane.domain.common.reasons import ReasonedError, ReasonedValueError


class SsoClaimsRefused(ReasonedError):
    """The claims of the provider are insufficient for a sign-in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupGrant:
    """A group at the provider gives a role in a team."""

    group: str
    #: Slug of the team.
    team: str
    role: TeamRole


@dataclass(frozen=True, slots=True, kw_only=True)
class SsoProvider:
    """The sign-on provider as it is configured."""

    #: As in its discovery document, without a trailing path.
    issuer: str
    client_id: str
    client_secret: str
    #: On the button.
    name: str = "OpenID"
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    username_claim: str = "preferred_username"
    groups_claim: str = "groups"
    groups: tuple[GroupGrant, ...] = ()
    #: Its members are company administrators; empty: no such group.
    admin_group: str = ""
    #: Its members are company operators; empty: no such group.
    operator_group: str = ""
    #: Passwords are for administrators of the company only.
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SsoIdentity:
    """A user as the provider describes them."""

    issuer: str
    subject: str
    username: str
    #: Empty unless the provider has verified that it is theirs.
    email: str
    first_name: str = ""
    last_name: str = ""
    groups: frozenset[str] = frozenset()


def parse_groups(text: str) -> tuple[GroupGrant, ...]:
    """Read ``{"ml-team": "maps:engineer", "leads": ["maps:administrator", "search:viewer"]}``.

    :raises ValueError: saying what is wrong with which group.
    """
    try:
        mapping = json.loads(text)
    except ValueError as error:
        raise ReasonedValueError(
            "sso.groups.invalid_json",
            "the mapping of groups to team roles is not valid JSON: {error}",
            error=str(error),
        ) from None
    if not isinstance(mapping, dict):
        raise ReasonedValueError(
            "sso.groups.not_an_object",
            "the mapping of groups to team roles must be a JSON object of group "
            'names and team:role values, for example "ml-team": "maps:engineer"',
        )
    return tuple(
        _parse_group_grant(group, target)
        for group, targets in mapping.items()
        for target in (targets if isinstance(targets, list) else [targets])
    )


def _parse_group_grant(group: str, target: Any) -> GroupGrant:
    team, colon, role = str(target).partition(":")
    if not team or not colon:
        raise ReasonedValueError(
            "sso.groups.invalid_grant",
            "group {group} must map to team:role, got {grant}",
            group=repr(group),
            grant=repr(target),
        )
    if role in set(CompanyRole):
        raise ReasonedValueError(
            "sso.groups.company_role",
            "group {group} maps to {role} in team {team}, which is a role of the "
            "whole company; remove it and name the group in "
            "NINEFOLD_OIDC_OPERATOR_GROUP",
            group=repr(group),
            role=repr(role),
            team=repr(team),
        )
    if role not in set(TeamRole):
        raise ReasonedValueError(
            "sso.groups.unknown_role",
            "group {group} maps to the role {role}; known are {roles}",
            group=repr(group),
            role=repr(role),
            roles=", ".join(TeamRole),
        )
    return GroupGrant(group=group, team=team, role=TeamRole(role))


def identity_from_claims(claims: Mapping[str, Any], *, provider: SsoProvider) -> SsoIdentity:
    """Return the identity in a verified ID token.

    Missing groups count as none: an absence never grants anything.

    :raises SsoClaimsRefused: if the subject or the user name is missing.
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject:
        raise SsoClaimsRefused(
            "sso.claims.subject_missing", "the identity provider did not send a subject"
        )
    username = claims.get(provider.username_claim)
    if not isinstance(username, str) or not username.strip():
        raise SsoClaimsRefused(
            "sso.claims.username_missing",
            "the identity provider did not send the claim {claim}, which contains the user name",
            claim=repr(provider.username_claim),
        )
    # Some providers send booleans as text.
    verified = str(claims.get("email_verified", "")).lower() == "true"
    return SsoIdentity(
        issuer=provider.issuer,
        subject=subject,
        username=username.strip(),
        email=_text_of_token_claim(claims, "email") if verified else "",
        first_name=_text_of_token_claim(claims, "given_name"),
        last_name=_text_of_token_claim(claims, "family_name"),
        groups=_parse_groups_claim(claims.get(provider.groups_claim)),
    )


def _text_of_token_claim(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    return value.strip() if isinstance(value, str) else ""


def _parse_groups_claim(value: Any) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset({value})
    if isinstance(value, list):
        return frozenset(one for one in value if isinstance(one, str))
    return frozenset()


def roles_granted(provider: SsoProvider, groups: frozenset[str]) -> dict[str, frozenset[TeamRole]]:
    """Slug of a team → the roles that those groups give in it."""
    granted: dict[str, frozenset[TeamRole]] = {}
    for grant in provider.groups:
        if grant.group in groups:
            granted[grant.team] = granted.get(grant.team, frozenset()) | {grant.role}
    return granted


def company_roles_granted(provider: SsoProvider, groups: frozenset[str]) -> frozenset[CompanyRole]:
    """The company roles that those groups give."""
    operates = bool(provider.operator_group) and provider.operator_group in groups
    return frozenset({CompanyRole.OPERATOR}) if operates else frozenset()


def grants_administration(provider: SsoProvider, groups: frozenset[str]) -> bool:
    """Return whether those groups grant company administration."""
    return bool(provider.admin_group) and provider.admin_group in groups
