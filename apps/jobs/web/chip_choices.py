"""Choices of chips in forms: groups of chips, and chips of the fleet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.fleet import selectors as fleet
from apps.fleet.selectors import FleetChip
from apps.jobs import services
from apps.jobs.web.form_fields import SelectWithDisabledChoices, set_choices
from apps.quotas import selectors as quotas
from controlplane.domain.common.accelerators import Chip, ChipKind, ProfileConfidence
from controlplane.ports import adapter_registry
from controlplane.ports.engines import Engine, EngineTask
from controlplane.web.forms import StyledForm

_CHIP_GROUPS: Mapping[str, Any] = {
    "any": _("any chip (best placement)"),
    "gpu": _("any GPU"),
    "npu": _("any NPU"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetChipChoices:
    """Chips of the fleet, queried once for a page."""

    known: tuple[FleetChip, ...]
    #: Unallocated cards by chip.
    free: Mapping[str, int]

    @classmethod
    def load(cls) -> FleetChipChoices:
        return cls(known=fleet.fleet_chips(), free=quotas.count_free_cards())

    def choices(self, *, chosen: str = "") -> list[tuple[str, Any]]:
        """Groups, then chips of the fleet; a chosen chip is included even if the fleet has none."""
        chips: list[tuple[str, Any]] = [
            (
                one.chip.name,
                gettext("%(chip)s (%(cards)s cards)")
                % {"chip": one.chip.label, "cards": f"{one.cards:,}"},
            )
            for one in self.known
            if one.cards
        ]
        if chosen and chosen not in _CHIP_GROUPS and chosen not in dict(chips):
            chips += [
                (one.chip.name, format_lazy("{} ({})", one.chip.label, _("none in the fleet")))
                for one in self.known
                if one.chip.name == chosen
            ]
        return [*_CHIP_GROUPS.items(), *chips]

    def reasons(self, names: Iterable[str], *, engine: Engine, task: EngineTask) -> dict[str, str]:
        """For each name that the engine cannot run on in this fleet, why."""
        reasons = {}
        for name in names:
            _chips, findings = services.expand_chip_names(
                [name], engine=engine, task=task, free=self.free
            )
            if findings:
                reasons[name] = findings[0].message
        return reasons

    def preferred(self, group: str, *, engine: Engine, task: EngineTask) -> str:
        """The chip that the group resolves to now; the group itself if there is none."""
        chips, _findings = services.expand_chip_names(
            [group], engine=engine, task=task, free=self.free
        )
        return chips[0].name if chips else group


class ChipComparisonForm(StyledForm):
    """Selection of the two chips to compare."""

    left = forms.ChoiceField(label=_("One chip"), widget=SelectWithDisabledChoices, required=False)
    right = forms.ChoiceField(
        label=_("Another chip"), widget=SelectWithDisabledChoices, required=False
    )

    def __init__(
        self,
        data: Mapping[str, Any],
        *,
        engine: Engine,
        task: EngineTask,
        preferred: str = "",
        chips_known: Sequence[FleetChip] | None = None,
    ) -> None:
        known = chips_known or fleet.fleet_chips()
        chips = [one.chip for one in known]
        reasons = {
            chip.name: reason for chip in chips if (reason := engine.unsupported_reason(task, chip))
        }
        running = [one for one in known if one.chip.name not in reasons] or known
        usable = [one.chip for one in running]
        left = adapter_registry.chip_by_name(str(data.get("left") or preferred))
        left = left if left in usable else usable[0]
        right = adapter_registry.chip_by_name(
            str(data.get("right") or "")
        ) or _default_comparison_chip(left, running)
        #: The chips that are compared; defaults replace invalid values.
        self.chips: tuple[Chip, Chip] = (left, right)
        super().__init__(initial={"left": left.name, "right": right.name})
        usable_first = sorted(chips, key=lambda chip: chip.name in reasons)
        choices = [(chip.name, chip.label) for chip in usable_first]
        for name in ("left", "right"):
            set_choices(self.choice(name), choices, reasons=reasons)


def _default_comparison_chip(left: Chip, known: Sequence[FleetChip]) -> Chip:
    """The default second chip: one of another kind, in the fleet, and verified, as far as there is one."""

    def rank(one: FleetChip) -> tuple[bool, ...]:
        chip = one.chip
        return (
            chip.kind is left.kind,
            chip.kind is ChipKind.CPU,
            not one.cards,
            chip.confidence is not ProfileConfidence.VERIFIED,
        )

    others = sorted((one for one in known if one.chip.name != left.name), key=rank)
    return others[0].chip if others else left
