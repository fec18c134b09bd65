"""Personal tokens, and the choice of a team that other forms share."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.accounts import selectors
from apps.accounts.models import Team, User
from controlplane.web.forms import PlainForm

EXPIRIES = (
    ("30", _("30 days")),
    ("90", _("90 days")),
    ("365", _("1 year")),
    ("", _("never")),
)


def expiry_of(days: str) -> timedelta | None:
    """What a choice of :data:`EXPIRIES` means."""
    return timedelta(days=int(days)) if days else None


class TokenForm(PlainForm):
    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("What it is for, to tell it apart later.")
    )
    expires = forms.ChoiceField(
        label=_("Expires after"), choices=EXPIRIES, required=False, initial="90"
    )


class TeamForm(PlainForm):
    """A form that makes something for a team: asks which only where there are several."""

    team = forms.ModelChoiceField(label=_("Team"), queryset=Team.objects.none(), empty_label=None)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        teams = selectors.teams_of(user)
        choice = self.fields["team"]
        assert isinstance(choice, forms.ModelChoiceField)  # noqa: S101 - declared above
        choice.queryset = teams
        choice.to_field_name = "uid"
        own = list(teams[:2])
        if own:
            choice.initial = own[0].uid
        if len(own) == 1:
            choice.widget = forms.HiddenInput()
