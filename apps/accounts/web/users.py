"""Pages of user accounts, for company administrators."""

from __future__ import annotations

from typing import Any

from axes.models import AccessAttempt
from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts import selectors, services
from apps.accounts.models import Membership, Team, User
from apps.accounts.services import UserChangeRefused
from apps.accounts.web.authentication import mail_is_configured, send_email
from apps.accounts.web.forms import CompanyRolesForm, NewUserForm
from apps.accounts.web.http_requests import AuthenticatedRequest, absolute_url
from apps.accounts.web.role_labels import company_role_labels, role_descriptions, role_labels
from controlplane.domain.common.permissions import CompanyRole, Permission
from controlplane.web.forms import submitted_data
from controlplane.web.pages import render_form, row_action_view, save_form
from controlplane.web.tables import FilterForm, ListTable, TableColumn

_STATES = (
    ("", gettext_lazy("all")),
    ("active", gettext_lazy("active")),
    ("inactive", gettext_lazy("deactivated")),
    ("admin", gettext_lazy("company administrators")),
    ("operator", gettext_lazy("company operators")),
    ("never", gettext_lazy("never signed in")),
)
_STATE_LOOKUPS: dict[str, dict[str, Any]] = {
    "active": {"is_active": True},
    "inactive": {"is_active": False},
    "admin": {"is_superuser": True},
    "operator": {"company_role_bindings__role": CompanyRole.OPERATOR},
    "never": {"last_login": None},
}


class UserFilter(FilterForm):
    text = forms.CharField(label=gettext_lazy("Name or e-mail"), required=False)
    team = forms.ModelChoiceField(
        label=gettext_lazy("Team"),
        queryset=Team.objects.all(),
        to_field_name="slug",
        required=False,
        empty_label=gettext_lazy("all teams"),
    )
    state = forms.ChoiceField(label=gettext_lazy("State"), choices=_STATES, required=False)

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        if text := self.chosen("text"):
            rows = rows.filter(username__icontains=text) | rows.filter(email__icontains=text)
        if team := self.chosen("team"):
            rows = rows.filter(pk__in=team.memberships.values("user_id"))
        return rows.filter(**_STATE_LOOKUPS.get(self.chosen("state") or "", {}))


COLUMNS = (
    TableColumn(key="username", label=gettext_lazy("User name"), sort="username"),
    TableColumn(key="email", label=gettext_lazy("E-mail"), sort="email"),
    TableColumn(
        key="teams",
        label=gettext_lazy("Teams"),
        csv=lambda user: ", ".join(sorted({one.team.slug for one in user.memberships.all()})),
    ),
    TableColumn(
        key="company_roles",
        label=gettext_lazy("Company roles"),
        csv=lambda user: ", ".join(one.role for one in user.company_role_bindings.all()),
    ),
    TableColumn(key="is_active", label=gettext_lazy("State")),
    TableColumn(key="last_login", label=gettext_lazy("Last sign-in"), sort="last_login"),
    TableColumn(key="date_joined", label=gettext_lazy("Since"), sort="date_joined"),
)


@login_required
def user_list(request: AuthenticatedRequest) -> HttpResponseBase:
    selectors.require_permission(request.user, Permission.MANAGE_TEAM, team=None)
    rows = selectors.users_visible(request.user).prefetch_related(
        "memberships__team", "company_role_bindings"
    )
    table = ListTable(request, rows, columns=COLUMNS, filters=UserFilter, default_sort="username")
    if table.is_csv_request:
        return table.csv(filename="people.csv")
    shown = [
        {
            "person": one,
            "teams": sorted({row.team.name for row in one.memberships.all()}),
            "company_roles": company_role_labels(
                [row.role for row in one.company_role_bindings.all()]
            ),
        }
        for one in table.rows
    ]
    return render(request, "accounts/users.html", {"table": table, "rows": shown})


@login_required
def user_new(request: AuthenticatedRequest) -> HttpResponse:
    selectors.require_permission(request.user, Permission.MANAGE_TEAM, team=None)
    form = NewUserForm(submitted_data(request))
    if created := save_form(
        form, lambda: services.user_create(actor=request.user, **form.cleaned_data)
    ):
        return _invitation_page(request, created)
    return render_form(request, "accounts/user_new.html", form, roles=role_descriptions())


@login_required
def user_detail(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    return render(request, "accounts/user.html", _user_context(request, _user_or_404(request, uid)))


def _user_context(request: AuthenticatedRequest, row: User, **more: Any) -> dict[str, Any]:
    current: dict[Team, list[str]] = {}
    for one in row.memberships.select_related("team").order_by("team__name"):
        current.setdefault(one.team, []).append(one.role)
    bound = dict(row.company_role_bindings.values_list("role", "source"))
    locked = AccessAttempt.objects.filter(
        username=row.username, failures_since_start__gte=settings.AXES_FAILURE_LIMIT
    )
    return {
        "person": row,
        "teams": [{"team": team, "roles": role_labels(roles)} for team, roles in current.items()],
        "company_roles": CompanyRolesForm(initial={"company_roles": list(bound)}),
        "company_roles_by_sign_on": company_role_labels(
            [role for role, source in bound.items() if source == Membership.GrantSource.SIGN_ON]
        ),
        "roles": role_descriptions(),
        "identities": list(row.identities.all()),
        "tokens": list(row.tokens.filter(revoked_at=None)),
        "locked": locked.exists(),
        "self": row == request.user,
        **more,
    }


def _user_or_404(request: AuthenticatedRequest, uid: str) -> User:
    """:raises PermissionRefused: unless they administer the company."""
    selectors.require_permission(request.user, Permission.MANAGE_TEAM, team=None)
    return get_object_or_404(selectors.users_visible(request.user), uid=uid)


@login_required
@require_POST
def create_invitation(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """A link by which they set a password; shown in the answer and never again."""
    return _invitation_page(request, _user_or_404(request, uid))


_SUBJECT = gettext_lazy("Your account at Ninefold")


def _invitation_page(request: AuthenticatedRequest, row: User) -> HttpResponse:
    try:
        uidb64, token = services.create_password_invitation(user=row, actor=request.user)
    except UserChangeRefused as refusal:
        context = _user_context(request, row, refusal=str(refusal))
        return render(request, "accounts/user.html", context, status=409)
    link = absolute_url(request, reverse("password-set", args=[uidb64, token]))
    mailed = (
        mail_is_configured()
        and bool(row.email)
        and send_email(
            row, to=row.email, subject=_SUBJECT, template="invite_mail.txt", context={"link": link}
        )
    )
    return render(
        request, "accounts/user.html", _user_context(request, row, link=link, mailed=mailed)
    )


_action = row_action_view(load=_user_or_404, page="person", refusals=(UserChangeRefused,))


@_action
def activate_user(request: AuthenticatedRequest, row: User) -> str:
    services.user_set_active(user=row, is_active=True, actor=request.user)
    return _("%(name)s can sign in again.") % {"name": row.username}


@_action
def deactivate_user(request: AuthenticatedRequest, row: User) -> str:
    services.user_set_active(user=row, is_active=False, actor=request.user)
    done = _(
        "%(name)s was signed out everywhere and cannot sign in. Their tokens are no longer valid."
    )
    return done % {"name": row.username}


@_action
def unlock_user(request: AuthenticatedRequest, row: User) -> str:
    services.user_unlock(user=row, actor=request.user)
    return _("%(name)s was unlocked and can sign in again.") % {"name": row.username}


@_action
def toggle_administrator(request: AuthenticatedRequest, row: User) -> str:
    """To administrator of the company and back."""
    up = request.POST.get("to") == "administrator"
    services.user_set_administrator(user=row, is_administrator=up, actor=request.user)
    done = (
        _("%(name)s is an administrator of the company now.")
        if up
        else _("%(name)s is no longer an administrator of the company.")
    )
    return done % {"name": row.username}


@_action
def update_company_roles(request: AuthenticatedRequest, row: User) -> str:
    """Grant exactly the company roles that were chosen."""
    form = CompanyRolesForm(request.POST)
    if not form.is_valid():
        raise UserChangeRefused(" ".join(map(str, form.errors["company_roles"])))
    services.company_roles_set(
        user=row, roles=form.cleaned_data["company_roles"], actor=request.user
    )
    return _("Company roles of %(name)s changed.") % {"name": row.username}
