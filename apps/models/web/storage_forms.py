"""Quotas and rules of retention."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from controlplane.domain.common.resources import GIB
from controlplane.domain.storage.retention import RetentionRules
from controlplane.web.forms import PlainForm

LONGEST_DAYS = 3650
#: Gibibytes; what fits the column, and more than any company stores.
LARGEST_QUOTA = 1 << 30


class QuotaForm(PlainForm):
    limit = forms.DecimalField(
        label=_("Quota in GiB"),
        required=False,
        min_value=0,
        max_value=LARGEST_QUOTA,
        decimal_places=3,
        help_text=_("Empty: no limit. What is there already stays, even if it is more."),
    )

    def limit_bytes(self) -> int | None:
        """What was typed, in bytes."""
        typed: Decimal | None = self.cleaned_data["limit"]
        return None if typed is None else int(typed * GIB)


class _DaysField(forms.IntegerField):
    """How long something is kept; empty: no rule."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, min_value=0, max_value=LONGEST_DAYS, **options)


class RulesForm(PlainForm):
    """Empty fields switch a rule off."""

    enabled = forms.BooleanField(label=_("Apply these rules"), required=False)
    keep_versions = forms.IntegerField(
        label=_("Newest versions of each model"),
        help_text=_("Older ones lose their bytes unless something needs them or they are pinned."),
        required=False,
        min_value=1,
        max_value=100_000,
    )
    checkpoint_days = _DaysField(
        label=_("Days for checkpoints"),
        help_text=_("After the end of a run; a retry goes on from them. Empty: seven days."),
    )
    failed_days = _DaysField(
        label=_("Days for files of failed runs"),
        help_text=_("What they handed over before they failed."),
    )
    log_days = _DaysField(
        label=_("Days for logs"), help_text=_("The last lines stay with the run.")
    )

    def rules(self) -> RetentionRules:
        return RetentionRules(**self.cleaned_data)
