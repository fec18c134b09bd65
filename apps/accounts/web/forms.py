"""Forms of users, teams and tokens, and the team choice that other forms share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db.models import Q
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from apps.accounts import selectors
from apps.accounts.models import Team, User
from apps.accounts.web.role_labels import COMPANY_ROLE_LABELS, ROLE_LABELS, SCOPE_LABELS
from controlplane.domain.common.permissions import CompanyRole, Scope, TeamRole
from controlplane.web.forms import StyledForm, row_choice_field
from controlplane.web.tables import FilterForm

EXPIRIES = (
    ("30", _("30 days")),
    ("90", _("90 days")),
    ("365", _("1 year")),
    ("", _("never")),
)


def token_lifetime_from_choice(days: str) -> timedelta | None:
    """What a choice of :data:`EXPIRIES` means."""
    return timedelta(days=int(days)) if days else None


class LoginForm(AuthenticationForm):
    """By password; where the provider is required, for administrators of the company only."""

    def confirm_login_allowed(self, user: Any) -> None:
        super().confirm_login_allowed(user)
        provider = settings.NINEFOLD_OIDC
        if provider and provider.required and not selectors.is_company_administrator(user):
            message = _(
                "All users sign in with %(provider)s; passwords are for administrators of the "
                "company."
            )
            raise forms.ValidationError(message, params={"provider": provider.name})


class TokenForm(StyledForm):
    name = forms.CharField(
        label=_("Name"),
        max_length=80,
        help_text=_("The purpose of the token, for example “nightly export”."),
    )
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        choices=[(scope.value, SCOPE_LABELS[scope]) for scope in Scope],
        widget=forms.CheckboxSelectMultiple,
        initial=[Scope.READ.value],
        help_text=_(
            "Select only the scopes that the program needs. A token never grants more "
            "than your own permissions."
        ),
    )
    expires = forms.ChoiceField(
        label=_("Expires after"), choices=EXPIRIES, required=False, initial="90"
    )
    team = row_choice_field(Team, _("Only in team"), empty_label=_("all my teams"), required=False)
    more = ("team",)
    finding_fields: ClassVar[Mapping[str, str]] = {"expires_at": "expires"}

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        longest: int = settings.NINEFOLD_TOKEN_MAX_DAYS
        if longest:
            expires = self.choice("expires")
            shorter: list[tuple[str, Any]] = [
                (days, label) for days, label in EXPIRIES if days and int(days) <= longest
            ]
            shorter = shorter or [(str(longest), _("%(days)d days") % {"days": longest})]
            expires.choices = shorter
            expires.initial = shorter[-1][0]
            expires.required = True
        self.model_choice_field("team").queryset = selectors.teams_visible(user)

    def clean_scopes(self) -> frozenset[Scope]:
        return frozenset(Scope(code) for code in self.cleaned_data["scopes"])


class TeamForm(StyledForm):
    """A form that creates an object of a team; shows the choice only if there are several teams."""

    team = forms.ModelChoiceField(label=_("Team"), queryset=Team.objects.none(), empty_label=None)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        teams = selectors.teams_visible(user)
        choice = self.model_choice_field("team")
        choice.queryset = teams
        choice.to_field_name = "uid"
        own = list(teams[:2])
        if own:
            choice.initial = own[0].uid
        if len(own) == 1:
            choice.widget = forms.HiddenInput()


class TeamFilterForm(FilterForm):
    """A list filter by team, for users with several teams."""

    team = row_choice_field(Team, _("Team"), empty_label=_("any team"))

    def __init__(
        self, data: QueryDict | None = None, *, user: selectors.RequestUser, **kwargs: Any
    ) -> None:
        super().__init__(data, **kwargs)
        teams = selectors.teams_visible(user)
        if teams.count() < 2:
            del self.fields["team"]
            return
        self.model_choice_field("team").queryset = teams


class TeamNameForm(StyledForm):
    name = forms.CharField(label=_("Name"), max_length=80)


class NewTeamForm(TeamNameForm):
    slug = forms.SlugField(
        label=_("Short name"),
        max_length=40,
        help_text=_(
            "Used in URLs and in groups of the sign-on provider. It cannot be changed later."
        ),
    )

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        # The URL of the form that creates teams.
        if slug == "new":
            raise forms.ValidationError(_("“new” is reserved; choose another user name."))
        return slug


class RolesForm(StyledForm):
    roles = forms.MultipleChoiceField(
        label=_("Roles"),
        choices=[(role.value, ROLE_LABELS[role]) for role in TeamRole],
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )

    def clean_roles(self) -> frozenset[TeamRole]:
        return frozenset(TeamRole(code) for code in self.cleaned_data["roles"])


class CompanyRolesForm(StyledForm):
    company_roles = forms.MultipleChoiceField(
        label=_("Company roles"),
        choices=list(COMPANY_ROLE_LABELS.items()),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_(
            "Apply to the nodes and cards of all teams, independent of the person's own teams."
        ),
    )

    def clean_company_roles(self) -> frozenset[CompanyRole]:
        return frozenset(CompanyRole(code) for code in self.cleaned_data["company_roles"])


class NewMemberForm(RolesForm):
    user = forms.CharField(
        label=_("User name or e-mail"),
        max_length=254,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )
    field_order = ("user", "roles")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["roles"].required = True

    def clean_user(self) -> User:
        text = self.cleaned_data["user"].strip()
        found = list(
            User.objects.filter(Q(username=text) | Q(email__iexact=text), is_active=True)[:2]
        )
        if not found:
            raise forms.ValidationError(
                _(
                    "No user is named %(text)s. An administrator of the company can add the person, "
                    "or they sign in once with the sign-on provider."
                ),
                params={"text": text},
            )
        if len(found) > 1:
            message = _("Several users have the e-mail %(text)s; enter the user name.")
            raise forms.ValidationError(message, params={"text": text})
        return found[0]


class NewUserForm(RolesForm):
    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )
    email = forms.EmailField(label=_("E-mail"), required=False)
    team = forms.ModelChoiceField(
        label=_("Team"),
        queryset=Team.objects.all(),
        required=False,
        to_field_name="uid",
        empty_label=_("none yet"),
    )
    field_order = ("username", "email", "team", "roles")

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if bool(values.get("team")) != bool(values.get("roles")):
            self.add_error(
                "roles" if values.get("team") else "team",
                _("Choose both a team and a role, or neither."),
            )
        return values


class ProfileForm(StyledForm):
    first_name = forms.CharField(label=_("First name"), max_length=150, required=False)
    last_name = forms.CharField(label=_("Last name"), max_length=150, required=False)
    language = forms.ChoiceField(
        label=_("Language"),
        choices=[("", _("browser language")), *settings.LANGUAGES],
        required=False,
    )
    time_zone = forms.ChoiceField(label=_("Time zone"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zones = sorted(name for name in available_timezones() if "/" in name)
        self.choice("time_zone").choices = [("", "UTC"), *((name, name) for name in zones)]
