"""Comparing answers with references."""

from __future__ import annotations

import pytest

from ninefold_runtime.answer_scoring import AnswerScore, labelled_pairs, normalise_text

ON_ONE_CHIP = "青海省_1,西宁市_3A,城北区_3A,三其村_4B, _5A-1,可以发圆通吗 谢谢_UNK,"
ON_ANOTHER = "青海省_1,西宁市_3A,城北区_3A,三其村_4B, _5A-1,可以发圆通吗 谢谢 _UNK"


def test_a_space_and_a_trailing_comma_do_not_matter() -> None:
    assert normalise_text(ON_ONE_CHIP) == normalise_text(ON_ANOTHER)
    score = AnswerScore()
    assert score.add(answer=ON_ONE_CHIP, reference=ON_ANOTHER)
    assert score.exact_match() == 1.0
    assert score.label_accuracy() == 1.0


def test_labels_are_taken_apart_in_order_with_empty_values() -> None:
    assert labelled_pairs(ON_ANOTHER) == (
        ("_1", "青海省"),
        ("_3A", "西宁市"),
        ("_3A", "城北区"),
        ("_4B", "三其村"),
        ("_5A-1", ""),
        ("_UNK", "可以发圆通吗谢谢"),
    )


def test_a_comma_inside_a_value_belongs_to_it() -> None:
    assert labelled_pairs("a,b_1,c_4B") == (("_1", "a,b"), ("_4B", "c"))


@pytest.mark.parametrize("text", ["", "no labels", "a_1,rest without"])
def test_a_text_that_is_not_labelled_throughout_has_no_labels(text: str) -> None:
    assert labelled_pairs(text) == ()


def test_of_two_equal_labels_each_is_compared_with_its_own() -> None:
    score = AnswerScore()
    assert not score.add(answer="b_3A,a_3A,c_4B", reference="a_3A,b_3A,c_4B")
    assert score.label_accuracy() == pytest.approx(1 / 3)
    assert score.per_label()["_3A"] == {"total": 2, "correct": 0, "accuracy": 0.0}
    assert score.per_label()["_4B"] == {"total": 1, "correct": 1, "accuracy": 1.0}


def test_a_missing_label_is_a_wrong_one() -> None:
    score = AnswerScore()
    score.add(answer="a_1", reference="a_1,b_4B")
    assert score.label_accuracy() == 0.5


def test_references_without_labels_have_no_label_accuracy() -> None:
    score = AnswerScore()
    score.add(answer="yes", reference="yes")
    assert score.label_accuracy() is None
    assert score.exact_match() == 1.0
