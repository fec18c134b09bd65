from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.finetune_spec_request_grpo_reward import (
    FinetuneSpecRequestGRPOReward,
    check_finetune_spec_request_grpo_reward,
)
from ..types import UNSET, Unset

T = TypeVar("T", bound="FinetuneSpecRequestGRPO")


@_attrs_define
class FinetuneSpecRequestGRPO:
    """Policy optimization; used by the objective grpo."""

    generations: int | Unset = 8
    max_new_tokens: int | Unset = 256
    beta: float | Unset = 0.0
    temperature: float | Unset = 1.0
    reward: FinetuneSpecRequestGRPOReward | Unset = "exact_match"

    def to_dict(self) -> dict[str, Any]:
        generations = self.generations

        max_new_tokens = self.max_new_tokens

        beta = self.beta

        temperature = self.temperature

        reward: str | Unset = UNSET
        if not isinstance(self.reward, Unset):
            reward = self.reward

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if generations is not UNSET:
            field_dict["generations"] = generations
        if max_new_tokens is not UNSET:
            field_dict["max_new_tokens"] = max_new_tokens
        if beta is not UNSET:
            field_dict["beta"] = beta
        if temperature is not UNSET:
            field_dict["temperature"] = temperature
        if reward is not UNSET:
            field_dict["reward"] = reward

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        generations = d.pop("generations", UNSET)

        max_new_tokens = d.pop("max_new_tokens", UNSET)

        beta = d.pop("beta", UNSET)

        temperature = d.pop("temperature", UNSET)

        _reward = d.pop("reward", UNSET)
        reward: FinetuneSpecRequestGRPOReward | Unset
        if isinstance(_reward, Unset):
            reward = UNSET
        else:
            reward = check_finetune_spec_request_grpo_reward(_reward)

        finetune_spec_request_grpo = cls(
            generations=generations,
            max_new_tokens=max_new_tokens,
            beta=beta,
            temperature=temperature,
            reward=reward,
        )

        return finetune_spec_request_grpo
