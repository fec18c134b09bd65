"""How each state looks: one table for every page, so that a state is the same everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Never colour alone: an icon and a word beside it."""

    word: str | Promise
    icon: str
    #: A colour of the base style sheet: green, blue, yellow, orange, red, secondary.
    colour: str


def _look(word: str | Promise, icon: str, colour: str) -> Look:
    return Look(word=word, icon=icon, colour=colour)


LOOKS: Mapping[str, Look] = {
    "waiting": _look(_("waiting"), "clock", "yellow"),
    "pending": _look(_("waiting"), "clock", "yellow"),
    "admitted": _look(_("preparing"), "settings", "blue"),
    "launched": _look(_("starting"), "settings", "blue"),
    "starting": _look(_("starting"), "settings", "blue"),
    "importing": _look(_("importing"), "download", "blue"),
    "running": _look(_("running"), "player-play", "blue"),
    "completing": _look(_("finishing"), "refresh", "blue"),
    "stopping": _look(_("stopping"), "player-pause", "orange"),
    "revoking": _look(_("giving back"), "player-pause", "orange"),
    "succeeded": _look(_("succeeded"), "circle-check", "green"),
    "ready": _look(_("ready"), "circle-check", "green"),
    "usable": _look(_("usable"), "circle-check", "green"),
    "degraded": _look(_("degraded"), "alert-triangle", "orange"),
    "backoff": _look(_("restarting"), "refresh", "orange"),
    "failed": _look(_("failed"), "circle-x", "red"),
    "isolated": _look(_("isolated"), "shield", "red"),
    "held": _look(pgettext_lazy("pipeline", "held at a gate"), "hourglass", "orange"),
    "skipped": _look(pgettext_lazy("step", "skipped"), "chevron-right", "secondary"),
    "cancelled": _look(_("cancelled"), "player-stop", "secondary"),
    "stopped": _look(_("stopped"), "player-stop", "secondary"),
    "released": _look(_("released"), "player-stop", "secondary"),
    "no_new_work": _look(_("no new work"), "lock", "secondary"),
    "unknown": _look(_("unknown"), "alert-triangle", "secondary"),
    "open": _look(pgettext_lazy("queue", "open"), "circle-check", "green"),
    "closed": _look(pgettext_lazy("queue", "closed"), "lock", "secondary"),
    "draining": _look(pgettext_lazy("queue", "draining"), "clock", "yellow"),
    "valid": _look(_("valid"), "circle-check", "green"),
    "well": _look(pgettext_lazy("part of the product", "works"), "circle-check", "green"),
    "troubled": _look(_("in trouble"), "alert-triangle", "orange"),
    "down": _look(pgettext_lazy("part of the product", "down"), "circle-x", "red"),
    "passed": _look(pgettext_lazy("check", "passed"), "circle-check", "green"),
    "lacking": _look(pgettext_lazy("check", "lacking"), "alert-triangle", "orange"),
    "cordoned": _look(_("no new work"), "lock", "secondary"),
    "not_ready": _look(_("not ready"), "circle-x", "red"),
    "on_time": _look(_("on time"), "circle-check", "green"),
    "late": _look(_("late"), "clock", "orange"),
    "failing": _look(_("failing"), "circle-x", "red"),
    "stuck": _look(_("stuck"), "alert-triangle", "red"),
    "unseen": _look(_("not yet"), "clock", "secondary"),
    "expired": _look(_("expired"), "clock", "secondary"),
    "deleted": _look(_("deleted"), "trash", "secondary"),
    "removed": _look(_("bytes removed"), "trash", "secondary"),
    "roomy": _look(pgettext_lazy("storage", "enough room"), "circle-check", "green"),
    "near": _look(pgettext_lazy("storage", "nearly full"), "alert-triangle", "orange"),
    "full": _look(pgettext_lazy("storage", "over quota"), "circle-x", "red"),
    "unlimited": _look(pgettext_lazy("storage", "no quota"), "info-circle", "secondary"),
    "revoked": _look(_("revoked"), "circle-x", "secondary"),
    "untried": _look(_("not called yet"), "circle-dashed", "secondary"),
    "working": _look(_("working"), "circle-check", "green"),
    "paused": _look(_("paused"), "player-pause", "secondary"),
    "switched_off": _look(_("switched off"), "ban", "red"),
    "arrived": _look(_("arrived"), "circle-check", "green"),
    "supported": _look(pgettext_lazy("engine", "supported"), "circle-check", "green"),
    "experimental": _look(pgettext_lazy("engine", "experimental"), "alert-circle", "yellow"),
    "legacy": _look(pgettext_lazy("engine", "older release"), "history", "orange"),
    "unsupported": _look(pgettext_lazy("engine", "unsupported"), "ban", "red"),
    "unsaid": _look(_("unknown"), "help-circle", "secondary"),
    "elsewhere": _look(pgettext_lazy("engine", "not rendered here"), "circle-dashed", "secondary"),
    "accepted": _look(pgettext_lazy("quantized model", "accepted"), "circle-check", "green"),
    "rejected": _look(pgettext_lazy("quantized model", "not accepted"), "circle-x", "red"),
    "overridden": _look(
        pgettext_lazy("quantized model", "accepted by a person"), "alert-circle", "yellow"
    ),
    "given_up": _look(_("given up"), "circle-x", "red"),
    "proposed": _look(pgettext_lazy("rearrangement", "proposed"), "clock", "yellow"),
    "approved": _look(pgettext_lazy("rearrangement", "approved"), "circle-check", "blue"),
    "under_way": _look(pgettext_lazy("rearrangement", "under way"), "player-play", "blue"),
    "done": _look(pgettext_lazy("rearrangement", "done"), "circle-check", "green"),
    "dismissed": _look(pgettext_lazy("rearrangement", "dismissed"), "ban", "secondary"),
    "planned": _look(pgettext_lazy("move", "not begun"), "clock", "secondary"),
    "landing": _look(pgettext_lazy("move", "waits for its cards"), "hourglass", "yellow"),
    "landed": _look(pgettext_lazy("move", "goes on"), "circle-check", "green"),
    "ended": _look(pgettext_lazy("move", "was over already"), "circle-check", "green"),
    "missed": _look(pgettext_lazy("move", "too late"), "circle-x", "red"),
    "dropped": _look(pgettext_lazy("move", "not made"), "ban", "secondary"),
    "fault_standing": _look(pgettext_lazy("fault", "standing"), "alert-triangle", "red"),
    "fault_acknowledged": _look(pgettext_lazy("fault", "acknowledged"), "check", "yellow"),
    "fault_over": _look(pgettext_lazy("fault", "over"), "circle-check", "green"),
    "level_1": _look("L1", "info-circle", "secondary"),
    "level_2": _look("L2", "alert-circle", "yellow"),
    "level_3": _look("L3", "alert-circle", "yellow"),
    "level_4": _look("L4", "alert-triangle", "orange"),
    "level_5": _look("L5", "alert-triangle", "red"),
    "level_6": _look("L6", "circle-x", "red"),
    "isolation_draining": _look(pgettext_lazy("isolation", "being emptied"), "hourglass", "orange"),
    "isolation_empty": _look(pgettext_lazy("isolation", "out of use"), "shield", "red"),
    "isolation_testing": _look(pgettext_lazy("isolation", "being tested"), "activity", "blue"),
    "isolation_returned": _look(pgettext_lazy("isolation", "back in use"), "circle-check", "green"),
    "critical": _look(pgettext_lazy("alert", "critical"), "circle-x", "red"),
    "warning": _look(pgettext_lazy("alert", "warning"), "alert-triangle", "orange"),
    "info": _look(pgettext_lazy("alert", "info"), "info-circle", "blue"),
    "firing": _look(pgettext_lazy("alert", "firing"), "bell", "red"),
    "over": _look(pgettext_lazy("alert", "over"), "circle-check", "green"),
    "resolved": _look(pgettext_lazy("alert", "over"), "circle-check", "green"),
    "more": _look(pgettext_lazy("alert", "more of it"), "bell", "orange"),
    "repeat": _look(pgettext_lazy("alert", "told again"), "bell", "orange"),
    "at_work": _look(pgettext_lazy("node", "command runs"), "player-play", "blue"),
    "testing": _look(pgettext_lazy("node", "being tested"), "heart-rate-monitor", "blue"),
    "agent_well": _look(pgettext_lazy("agent", "heard"), "circle-check", "green"),
    "agent_silent": _look(pgettext_lazy("agent", "silent"), "clock", "orange"),
    "agent_unseen": _look(pgettext_lazy("agent", "never heard"), "circle-dashed", "secondary"),
    "agent_gone": _look(pgettext_lazy("agent", "its node is gone"), "ban", "secondary"),
    "silencing": _look(pgettext_lazy("silence", "stands"), "player-pause", "blue"),
}


def look_of(state: str) -> Look:
    """A state that is not in the table is shown by its own name."""
    return LOOKS.get(state) or Look(
        word=state.replace("_", " "), icon="info-circle", colour="secondary"
    )
