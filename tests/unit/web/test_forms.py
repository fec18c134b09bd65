"""Fields of forms, asked for by what they were declared as."""

from __future__ import annotations

import pytest
from django import forms

from apps.accounts.models import Team
from apps.jobs.web.form_fields import SelectWithDisabledChoices, disable_choices, set_choices
from controlplane.web.forms import StyledForm


class Sample(StyledForm):
    name = forms.CharField()
    size = forms.ChoiceField(choices=[("s", "small")], widget=SelectWithDisabledChoices)
    teams = forms.ModelChoiceField(queryset=Team.objects.none())


def test_a_field_is_given_its_choices_and_rows_by_name() -> None:
    form = Sample()
    form.choice("size").choices = [("l", "large")]
    form.model_choice_field("teams").queryset = Team.objects.filter(slug="none")
    assert 'value="l"' in str(form["size"])
    assert 'value="l"' not in str(Sample()["size"])


@pytest.mark.parametrize("name", ["name", "size"])
def test_a_field_of_another_kind_is_refused_with_what_would_be_right(name: str) -> None:
    with pytest.raises(TypeError, match=f"Sample.{name} is a .*; declare it as a ModelChoiceField"):
        Sample().model_choice_field(name)


def test_choices_out_of_reach_are_greyed_out_with_the_reason() -> None:
    field = Sample().choice("size")
    set_choices(field, [("s", "small"), ("l", "large")], reasons={"l": "there is no room"})
    drawn = field.widget.render("size", "s")
    assert "disabled" in drawn.partition('value="l"')[2]
    assert "large; not available: there is no room" in drawn


def test_a_widget_that_shows_no_reasons_is_refused() -> None:
    with pytest.raises(TypeError, match="a TextInput shows no reasons"):
        disable_choices(Sample().fields["name"], {"x": "because"})
