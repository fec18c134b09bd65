"""What every form asks whose work waits in a queue."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext

from apps.accounts.models import Team
from apps.accounts.web.forms import TeamForm
from apps.quotas import selectors as quotas
from apps.quotas.models import Queue


class QueuedForm(TeamForm):
    """A form of a team; once it is valid, ``queue`` among its values is where the work waits."""

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if values.get("team") is not None:
            values["queue"] = self.queue_of(values["team"])
            if values["queue"] is None:
                raise ValidationError(
                    gettext("No queue is open to team %(team)s; an administrator can open one.")
                    % {"team": values["team"]}
                )
        return values

    def queue_of(self, team: Team) -> Queue | None:
        """The queue in which it waits; None where none is open to the team."""
        return quotas.queue_default(team)
