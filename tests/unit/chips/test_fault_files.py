"""A vendor's fault file: what it says is understood, and what it cannot mean is refused with its place."""

from __future__ import annotations

import tomllib
from datetime import timedelta

import pytest

from controlplane.adapters.chips.profiles import parse_fault_map
from controlplane.adapters.chips.toml_sections import InvalidChipProfile, TomlSection
from controlplane.domain.health.faults import (
    REMEDIES,
    CardFitness,
    DurationEscalation,
    FaultLevel,
    FaultMap,
    RepeatRule,
)

LEVELS = '[levels]\nNOTE = "11 12"\nRESTART_JOB = "21"\nISOLATE = "A0..A3"\n'


def read(text: str) -> FaultMap:
    return parse_fault_map(TomlSection(tomllib.loads(text), at="faults.toml"))


def test_all_that_a_file_can_say_comes_out() -> None:
    faults = read(
        LEVELS
        + '[states]\nDEGRADED = "12"\n'
        + '[[repeats]]\ncodes = "21"\ntimes = 2\nhours = 6\n'
        + '[[lasting]]\ncodes = "11"\nseconds = 20\nlevel = "RESET_WHEN_IDLE"\n'
        + '[names]\nA3 = "Board fault"\n'
        + '[[words]]\ncodes = "A*"\ncause = "Broken."\nremedy = "Replace it."\n'
    )
    assert faults.meaning("12").state is CardFitness.DEGRADED
    assert faults.meaning("21").repeat_rule == RepeatRule(times=2, within=timedelta(hours=6))
    assert faults.meaning("11").lasting == DurationEscalation(
        after=timedelta(seconds=20), level=FaultLevel.RESET_WHEN_IDLE
    )
    assert faults.meaning("A2").cause == "Broken."
    named = faults.meaning("A3")
    assert (named.cause, named.remedy) == ("Board fault", "Replace it.")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[levels]\nWORSE = "1"\n', "levels.WORSE is no level; known are NOTE"),
        (LEVELS + '[states]\nTIRED = "12"\n', "states.TIRED is no state of a card; known are FIT"),
        (LEVELS + '[states]\nDEGRADED = "99"\n', "states speaks of 99, which has no level"),
        (LEVELS + '[[repeats]]\ncodes = "21"\ntimes = 2\n', "[[repeats]] 1: hours is required"),
        (LEVELS + "[[repeats]]\ntimes = 0\n", "[[repeats]] 1: codes is required"),
        (LEVELS + '[[lasting]]\ncodes = "11"\nlevel = "NOTE"\n', "seconds is required"),
        (LEVELS + '[[lasting]]\ncodes = "11"\nlevel = "X"\n', "level is 'X', which is no level"),
        (LEVELS + '[[words]]\ncodes = "11"\ncause = "C."\n', "[[words]] 1: remedy is required"),
        (
            LEVELS + '[[words]]\ncodes = "B*"\ncause = "C."\nremedy = "R."\n',
            "names and words describe B*, which has no level",
        ),
        (
            LEVELS + '[names]\n11 = "N"\n[[words]]\ncodes = "11"\ncause = "C."\nremedy = "R."\n',
            "words describes 11, which already has a text",
        ),
        (LEVELS + '[names]\n99 = "N"\n', "names and words describe 99, which has no level"),
        (LEVELS + "[words]\n", "words is {}, which is of the wrong type"),
        (LEVELS + '[remedies]\n11 = "R."\n', "remedies is not known here"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidChipProfile) as refused:
        read(text)
    assert says in str(refused.value)


def test_what_to_do_about_a_family_follows_the_level_of_each_code() -> None:
    faults = read(LEVELS + '[[words]]\ncodes = "A* 2*"\ncause = "C."\n')
    assert faults.meaning("A1").remedy == REMEDIES[FaultLevel.ISOLATE]
    assert faults.meaning("21").remedy == REMEDIES[FaultLevel.RESTART_JOB]
    assert faults.meaning("11").remedy == ""
