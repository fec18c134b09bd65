from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="FinetuneSpecGRPO")


@_attrs_define
class FinetuneSpecGRPO:
    """Policy optimization; used by the objective grpo."""

    generations: int | None | Unset = UNSET
    max_new_tokens: int | None | Unset = UNSET
    beta: float | None | Unset = UNSET
    temperature: float | None | Unset = UNSET
    reward: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        generations: int | None | Unset
        if isinstance(self.generations, Unset):
            generations = UNSET
        else:
            generations = self.generations

        max_new_tokens: int | None | Unset
        if isinstance(self.max_new_tokens, Unset):
            max_new_tokens = UNSET
        else:
            max_new_tokens = self.max_new_tokens

        beta: float | None | Unset
        if isinstance(self.beta, Unset):
            beta = UNSET
        else:
            beta = self.beta

        temperature: float | None | Unset
        if isinstance(self.temperature, Unset):
            temperature = UNSET
        else:
            temperature = self.temperature

        reward: None | str | Unset
        if isinstance(self.reward, Unset):
            reward = UNSET
        else:
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

        def _parse_generations(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        generations = _parse_generations(d.pop("generations", UNSET))

        def _parse_max_new_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_new_tokens = _parse_max_new_tokens(d.pop("max_new_tokens", UNSET))

        def _parse_beta(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        beta = _parse_beta(d.pop("beta", UNSET))

        def _parse_temperature(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        temperature = _parse_temperature(d.pop("temperature", UNSET))

        def _parse_reward(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reward = _parse_reward(d.pop("reward", UNSET))

        finetune_spec_grpo = cls(
            generations=generations,
            max_new_tokens=max_new_tokens,
            beta=beta,
            temperature=temperature,
            reward=reward,
        )

        return finetune_spec_grpo
