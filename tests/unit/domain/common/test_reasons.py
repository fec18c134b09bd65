"""Reasons: a string that keeps its code and parameters."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from controlplane.domain.common.reasons import (
    Reason,
    join_reasons,
    replace_in_reason,
    truncate_reason,
)

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


def test_foreign_text_is_cut_and_the_code_is_kept() -> None:
    assert truncate_reason(CORDONED, 100) == CORDONED
    assert truncate_reason("x" * 20, 10) == "x" * 10
    failed = Reason(
        "attempt.failed", "Failed: {reason}", reason=Reason("a.b", "{detail}", detail="x" * 20)
    )
    cut = truncate_reason(failed, 10)
    assert isinstance(cut, Reason)
    assert (cut.code, cut) == ("attempt.failed", "Failed: " + "x" * 10)


def test_a_text_is_replaced_in_the_parameters_only() -> None:
    reason = Reason("engine.a.chip", "card {chip} is a card", chip="card A")
    assert replace_in_reason(reason, "card", "…") == "card … A is a card"
