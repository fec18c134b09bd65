"""Reasons: a string that keeps its code and parameters."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from controlplane.domain.common.reasons import Reason, join_reasons, truncated

CORDONED = Reason("card.cordoned", "Cordoned by {user}.", user="ada")


def test_a_reason_is_its_english_message() -> None:
    assert CORDONED == "Cordoned by ada."
    assert json.dumps(CORDONED) == '"Cordoned by ada."'
    assert f"{CORDONED}" == "Cordoned by ada."


def test_an_exception_keeps_the_reason() -> None:
    refused = str(ValueError(CORDONED))
    assert isinstance(refused, Reason)
    assert refused.code == "card.cordoned"
    assert refused.params == {"user": "ada"}


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, copy.copy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_copies_keep_the_code(copied: type) -> None:
    same = copied(CORDONED)
    assert same == CORDONED
    assert same.as_json() == CORDONED.as_json()


def test_reasons_nest_and_are_listed() -> None:
    listed = Reason("node.unfit", "Unfit: {reasons}", reasons=[CORDONED, "no cards"])
    assert listed == "Unfit: Cordoned by ada.; no cards"
    assert listed.as_json() == {
        "code": "node.unfit",
        "params": {"reasons": [{"code": "card.cordoned", "params": {"user": "ada"}}, "no cards"]},
    }


def test_text_without_parameters_may_contain_braces() -> None:
    assert (
        Reason("gateway.messages_invalid", "Send [{'role': 'user'}].") == "Send [{'role': 'user'}]."
    )


def test_a_parameter_of_foreign_origin_is_not_a_template() -> None:
    assert Reason("attempt.failed", "Failed: {detail}", detail="{user}") == "Failed: {user}"


def test_a_placeholder_without_a_parameter_is_refused() -> None:
    with pytest.raises(KeyError):
        Reason("card.cordoned", "Cordoned by {user}.", name="ada")


def test_several_reasons_become_one() -> None:
    assert join_reasons([]) == ""
    assert join_reasons([CORDONED]) is CORDONED
    joined = join_reasons([CORDONED, "no cards"])
    assert joined == "Cordoned by ada.; no cards"
    assert isinstance(joined, Reason)


def test_a_short_reason_keeps_its_code_and_long_text_is_cut() -> None:
    assert truncated(CORDONED, 100) is CORDONED
    assert truncated("x" * 20, 10) == "x" * 10
