"""How urgent work is, as a choice of names."""

from __future__ import annotations

from collections.abc import Mapping

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from apps.accounts import selectors as accounts
from apps.accounts.models import User
from apps.jobs.web.limited_choices import LimitedSelect, limit
from apps.quotas import selectors as quotas
from apps.quotas.models import PriorityClass
from controlplane.domain.permissions import Permission

#: The names that an installation begins with, and what they mean; others are shown as they were written.
_KNOWN: Mapping[str, Promise] = {
    "urgent": pgettext_lazy("priority", "urgent"),
    "high": pgettext_lazy("priority", "high"),
    "normal": pgettext_lazy("priority", "normal"),
    "low": pgettext_lazy("priority", "low"),
}
_MEANT: Mapping[str, Promise] = {
    "Before everything else of its queue.": _("Before everything else of its queue."),
    "Before what is normal.": _("Before what is normal."),
    "What work has unless somebody says otherwise.": _(
        "What work has unless somebody says otherwise."
    ),
    "When nothing else waits; the first to stop.": _("When nothing else waits; the first to stop."),
}


class PriorityField(forms.TypedChoiceField):
    """One of the priority classes by its number; a number without a name is kept where it is given."""

    def __init__(self) -> None:
        super().__init__(
            label=_("Priority"), required=False, coerce=int, empty_value=None, widget=LimitedSelect
        )

    def offer(self, *, user: User, chosen: str) -> None:
        """Fill in the choices.

        :param user: those above 0 are for whom manages queues in some team; the job's own is asked for again.
        :param chosen: what the form has so far, right or wrong.
        """
        classes = quotas.priority_classes()
        choices = [(str(row.value), _label(row)) for row in classes]
        if chosen and chosen not in dict(choices) and _is_number(chosen):
            choices.append((chosen, chosen))
        self.choices = sorted(choices, key=lambda choice: -int(choice[0]))
        if not accounts.teams_where(user, Permission.MANAGE_QUEUES).exists():
            reason = gettext("for queue admins of the team")
            limit(self, {str(row.value): reason for row in classes if row.value > 0})


def _label(row: PriorityClass) -> str:
    name = _KNOWN.get(row.name, row.name)
    meaning = _MEANT.get(row.description, row.description)
    if not meaning:
        return gettext("%(name)s (%(value)s)") % {"name": name, "value": row.value}
    return gettext("%(name)s (%(value)s): %(meaning)s") % {
        "name": name,
        "value": row.value,
        "meaning": meaning,
    }


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii() and len(text) <= len(str(-(2**30)))
