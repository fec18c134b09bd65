from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.health_rule_trial import HealthRuleTrial


T = TypeVar("T", bound="HealthRuleTrials")


@_attrs_define
class HealthRuleTrials:
    """HealthRuleTrials"""

    since: datetime.datetime
    cards: int
    times: int
    trials: list[HealthRuleTrial]

    def to_dict(self) -> dict[str, Any]:
        since = self.since.isoformat()

        cards = self.cards

        times = self.times

        trials = []
        for trials_item_data in self.trials:
            trials_item = trials_item_data.to_dict()
            trials.append(trials_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "since": since,
                "cards": cards,
                "times": times,
                "trials": trials,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.health_rule_trial import HealthRuleTrial

        d = dict(src_dict)
        since = datetime.datetime.fromisoformat(d.pop("since"))

        cards = d.pop("cards")

        times = d.pop("times")

        trials = []
        _trials = d.pop("trials")
        for trials_item_data in _trials:
            trials_item = HealthRuleTrial.from_dict(trials_item_data)

            trials.append(trials_item)

        health_rule_trials = cls(
            since=since,
            cards=cards,
            times=times,
            trials=trials,
        )

        return health_rule_trials
