"""Who is told of what, and how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Q

from apps.accounts.models import Membership, Team, User
from apps.accounts.selectors import roles_granting, users_allowed
from apps.monitoring.models import NotificationPreference
from controlplane.domain.common.permissions import Permission
from controlplane.domain.news import NEWS, Audience, Channel, NewsKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How somebody wants to hear of one kind."""

    kind: NewsKind
    page: bool
    email: bool
    #: Of everything in their teams, not only of what they made.
    whole_team: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    user: User
    page: bool
    email: bool


def default_wish(kind: NewsKind) -> Wish:
    news = NEWS[kind]
    return Wish(
        kind=kind,
        page=Channel.PAGE in news.channels,
        email=Channel.EMAIL in news.channels,
        whole_team=news.whole_team,
    )


def wishes_of(user: User) -> list[Wish]:
    """One for each kind that its readers can choose about, in the order of the catalogue."""
    rows = {row.kind: row for row in NotificationPreference.objects.filter(user=user)}
    return [_wish(kind, rows.get(kind)) for kind, news in NEWS.items() if news.optional]


def _wish(kind: NewsKind, row: NotificationPreference | None) -> Wish:
    if row is None:
        return default_wish(kind)
    return Wish(kind=kind, page=row.page, email=row.email, whole_team=row.whole_team)


def mail_configured() -> bool:
    """Whether this installation sends e-mail at all."""
    return bool(settings.NINEFOLD_EMAIL_FROM)


def readers_of(
    kind: NewsKind, *, team: Team | None, maker: User | None, actor_name: str
) -> list[Reader]:
    """Everybody who hears of it by some channel. Who did it themselves knows it already."""
    audience = NEWS[kind].audience
    candidates = _candidates(audience, team=team, maker=maker)
    wishes = _wishes(kind, candidates)
    readers = []
    for user in candidates:
        wish = wishes[user.pk]
        involved = user == maker or audience is not Audience.MAKER or wish.whole_team
        knows = user.username == actor_name and audience is not Audience.ASKER
        email = wish.email and bool(user.email) and mail_configured()
        if involved and not knows and (wish.page or email):
            readers.append(Reader(user=user, page=wish.page, email=email))
    return readers


def _candidates(audience: Audience, *, team: Team | None, maker: User | None) -> list[User]:
    active = User.objects.filter(is_active=True)
    own = Q(pk=maker.pk) if maker is not None else Q(pk=None)
    if audience is Audience.OPERATORS:
        return list(users_allowed(Permission.OPERATE_FLEET).order_by("pk"))
    if audience is Audience.ASKER or team is None:
        return list(active.filter(own))
    memberships = Membership.objects.filter(team=team)
    if audience is Audience.ADMINISTRATORS:
        memberships = memberships.filter(role__in=roles_granting(Permission.MANAGE_TEAM))
        return list(active.filter(pk__in=memberships.values("user_id")).order_by("pk"))
    # An administrator of the company makes things in teams that they are no members of.
    inside = Q(pk__in=memberships.values("user_id")) | (own & Q(is_superuser=True))
    return list(active.filter(inside).order_by("pk"))


def _wishes(kind: NewsKind, users: Iterable[User]) -> Mapping[int, Wish]:
    rows = {
        row.user_id: row for row in NotificationPreference.objects.filter(kind=kind, user__in=users)
    }
    return {user.pk: _wish(kind, rows.get(user.pk)) for user in users}
