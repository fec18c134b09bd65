from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.finetune_spec_request_communication_data_type import (
    FinetuneSpecRequestCommunicationDataType,
    check_finetune_spec_request_communication_data_type,
)
from ..models.finetune_spec_request_fused_operators_type_0_item import (
    FinetuneSpecRequestFusedOperatorsType0Item,
    check_finetune_spec_request_fused_operators_type_0_item,
)
from ..models.finetune_spec_request_learning_rate_schedule import (
    FinetuneSpecRequestLearningRateSchedule,
    check_finetune_spec_request_learning_rate_schedule,
)
from ..models.finetune_spec_request_method import (
    FinetuneSpecRequestMethod,
    check_finetune_spec_request_method,
)
from ..models.finetune_spec_request_precision import (
    FinetuneSpecRequestPrecision,
    check_finetune_spec_request_precision,
)
from ..models.finetune_spec_request_recompute_activations import (
    FinetuneSpecRequestRecomputeActivations,
    check_finetune_spec_request_recompute_activations,
)
from ..models.finetune_spec_request_training_objective import (
    FinetuneSpecRequestTrainingObjective,
    check_finetune_spec_request_training_objective,
)
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.finetune_spec_request_dpo import FinetuneSpecRequestDPO
    from ..models.finetune_spec_request_grpo import FinetuneSpecRequestGRPO
    from ..models.finetune_spec_request_lo_ra import FinetuneSpecRequestLoRA
    from ..models.finetune_spec_request_parallel_plan import (
        FinetuneSpecRequestParallelPlan,
    )
    from ..models.finetune_spec_request_q_lo_ra import FinetuneSpecRequestQLoRA


T = TypeVar("T", bound="FinetuneSpecRequest")


@_attrs_define
class FinetuneSpecRequest:
    """Fields of the engines with the task finetune."""

    objective: FinetuneSpecRequestTrainingObjective | Unset = "sft"
    method: FinetuneSpecRequestMethod | Unset = UNSET
    epochs: float | Unset = UNSET
    max_steps: int | None | Unset = UNSET
    learning_rate: float | Unset = UNSET
    batch_size: int | Unset = UNSET
    gradient_accumulation: int | Unset = 1
    max_length: int | None | Unset = UNSET
    warmup_ratio: float | Unset = UNSET
    weight_decay: float | Unset = 0.0
    seed: int | Unset = 42
    scheduler: FinetuneSpecRequestLearningRateSchedule | Unset = "cosine"
    checkpoint_every_steps: int | Unset = UNSET
    log_every_steps: int | Unset = 10
    keep_checkpoints: int | Unset = 2
    lora: FinetuneSpecRequestLoRA | None | Unset = UNSET
    qlora: FinetuneSpecRequestQLoRA | None | Unset = UNSET
    dpo: FinetuneSpecRequestDPO | None | Unset = UNSET
    grpo: FinetuneSpecRequestGRPO | None | Unset = UNSET
    parallel: FinetuneSpecRequestParallelPlan | None | Unset = UNSET
    recompute: FinetuneSpecRequestRecomputeActivations | Unset = "auto"
    communication_dtype: FinetuneSpecRequestCommunicationDataType | Unset = "auto"
    fused_operators: list[FinetuneSpecRequestFusedOperatorsType0Item] | None | Unset = UNSET
    out_of_memory_retries: int | Unset = 1
    precision: FinetuneSpecRequestPrecision | Unset = "auto"
    train_split: str | Unset = "train"
    validation_split: None | str | Unset = "validation"
    engine_version: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.finetune_spec_request_dpo import FinetuneSpecRequestDPO
        from ..models.finetune_spec_request_grpo import FinetuneSpecRequestGRPO
        from ..models.finetune_spec_request_lo_ra import FinetuneSpecRequestLoRA
        from ..models.finetune_spec_request_parallel_plan import (
            FinetuneSpecRequestParallelPlan,
        )
        from ..models.finetune_spec_request_q_lo_ra import FinetuneSpecRequestQLoRA

        objective: str | Unset = UNSET
        if not isinstance(self.objective, Unset):
            objective = self.objective

        method: str | Unset = UNSET
        if not isinstance(self.method, Unset):
            method = self.method

        epochs = self.epochs

        max_steps: int | None | Unset
        if isinstance(self.max_steps, Unset):
            max_steps = UNSET
        else:
            max_steps = self.max_steps

        learning_rate = self.learning_rate

        batch_size = self.batch_size

        gradient_accumulation = self.gradient_accumulation

        max_length: int | None | Unset
        if isinstance(self.max_length, Unset):
            max_length = UNSET
        else:
            max_length = self.max_length

        warmup_ratio = self.warmup_ratio

        weight_decay = self.weight_decay

        seed = self.seed

        scheduler: str | Unset = UNSET
        if not isinstance(self.scheduler, Unset):
            scheduler = self.scheduler

        checkpoint_every_steps = self.checkpoint_every_steps

        log_every_steps = self.log_every_steps

        keep_checkpoints = self.keep_checkpoints

        lora: dict[str, Any] | None | Unset
        if isinstance(self.lora, Unset):
            lora = UNSET
        elif isinstance(self.lora, FinetuneSpecRequestLoRA):
            lora = self.lora.to_dict()
        else:
            lora = self.lora

        qlora: dict[str, Any] | None | Unset
        if isinstance(self.qlora, Unset):
            qlora = UNSET
        elif isinstance(self.qlora, FinetuneSpecRequestQLoRA):
            qlora = self.qlora.to_dict()
        else:
            qlora = self.qlora

        dpo: dict[str, Any] | None | Unset
        if isinstance(self.dpo, Unset):
            dpo = UNSET
        elif isinstance(self.dpo, FinetuneSpecRequestDPO):
            dpo = self.dpo.to_dict()
        else:
            dpo = self.dpo

        grpo: dict[str, Any] | None | Unset
        if isinstance(self.grpo, Unset):
            grpo = UNSET
        elif isinstance(self.grpo, FinetuneSpecRequestGRPO):
            grpo = self.grpo.to_dict()
        else:
            grpo = self.grpo

        parallel: dict[str, Any] | None | Unset
        if isinstance(self.parallel, Unset):
            parallel = UNSET
        elif isinstance(self.parallel, FinetuneSpecRequestParallelPlan):
            parallel = self.parallel.to_dict()
        else:
            parallel = self.parallel

        recompute: str | Unset = UNSET
        if not isinstance(self.recompute, Unset):
            recompute = self.recompute

        communication_dtype: str | Unset = UNSET
        if not isinstance(self.communication_dtype, Unset):
            communication_dtype = self.communication_dtype

        fused_operators: list[str] | None | Unset
        if isinstance(self.fused_operators, Unset):
            fused_operators = UNSET
        elif isinstance(self.fused_operators, list):
            fused_operators = []
            for fused_operators_type_0_item_data in self.fused_operators:
                fused_operators_type_0_item: str = fused_operators_type_0_item_data
                fused_operators.append(fused_operators_type_0_item)

        else:
            fused_operators = self.fused_operators

        out_of_memory_retries = self.out_of_memory_retries

        precision: str | Unset = UNSET
        if not isinstance(self.precision, Unset):
            precision = self.precision

        train_split = self.train_split

        validation_split: None | str | Unset
        if isinstance(self.validation_split, Unset):
            validation_split = UNSET
        else:
            validation_split = self.validation_split

        engine_version: None | str | Unset
        if isinstance(self.engine_version, Unset):
            engine_version = UNSET
        else:
            engine_version = self.engine_version

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if objective is not UNSET:
            field_dict["objective"] = objective
        if method is not UNSET:
            field_dict["method"] = method
        if epochs is not UNSET:
            field_dict["epochs"] = epochs
        if max_steps is not UNSET:
            field_dict["max_steps"] = max_steps
        if learning_rate is not UNSET:
            field_dict["learning_rate"] = learning_rate
        if batch_size is not UNSET:
            field_dict["batch_size"] = batch_size
        if gradient_accumulation is not UNSET:
            field_dict["gradient_accumulation"] = gradient_accumulation
        if max_length is not UNSET:
            field_dict["max_length"] = max_length
        if warmup_ratio is not UNSET:
            field_dict["warmup_ratio"] = warmup_ratio
        if weight_decay is not UNSET:
            field_dict["weight_decay"] = weight_decay
        if seed is not UNSET:
            field_dict["seed"] = seed
        if scheduler is not UNSET:
            field_dict["scheduler"] = scheduler
        if checkpoint_every_steps is not UNSET:
            field_dict["checkpoint_every_steps"] = checkpoint_every_steps
        if log_every_steps is not UNSET:
            field_dict["log_every_steps"] = log_every_steps
        if keep_checkpoints is not UNSET:
            field_dict["keep_checkpoints"] = keep_checkpoints
        if lora is not UNSET:
            field_dict["lora"] = lora
        if qlora is not UNSET:
            field_dict["qlora"] = qlora
        if dpo is not UNSET:
            field_dict["dpo"] = dpo
        if grpo is not UNSET:
            field_dict["grpo"] = grpo
        if parallel is not UNSET:
            field_dict["parallel"] = parallel
        if recompute is not UNSET:
            field_dict["recompute"] = recompute
        if communication_dtype is not UNSET:
            field_dict["communication_dtype"] = communication_dtype
        if fused_operators is not UNSET:
            field_dict["fused_operators"] = fused_operators
        if out_of_memory_retries is not UNSET:
            field_dict["out_of_memory_retries"] = out_of_memory_retries
        if precision is not UNSET:
            field_dict["precision"] = precision
        if train_split is not UNSET:
            field_dict["train_split"] = train_split
        if validation_split is not UNSET:
            field_dict["validation_split"] = validation_split
        if engine_version is not UNSET:
            field_dict["engine_version"] = engine_version

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.finetune_spec_request_dpo import FinetuneSpecRequestDPO
        from ..models.finetune_spec_request_grpo import FinetuneSpecRequestGRPO
        from ..models.finetune_spec_request_lo_ra import FinetuneSpecRequestLoRA
        from ..models.finetune_spec_request_parallel_plan import (
            FinetuneSpecRequestParallelPlan,
        )
        from ..models.finetune_spec_request_q_lo_ra import FinetuneSpecRequestQLoRA

        d = dict(src_dict)
        _objective = d.pop("objective", UNSET)
        objective: FinetuneSpecRequestTrainingObjective | Unset
        if isinstance(_objective, Unset):
            objective = UNSET
        else:
            objective = check_finetune_spec_request_training_objective(_objective)

        _method = d.pop("method", UNSET)
        method: FinetuneSpecRequestMethod | Unset
        if isinstance(_method, Unset):
            method = UNSET
        else:
            method = check_finetune_spec_request_method(_method)

        epochs = d.pop("epochs", UNSET)

        def _parse_max_steps(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_steps = _parse_max_steps(d.pop("max_steps", UNSET))

        learning_rate = d.pop("learning_rate", UNSET)

        batch_size = d.pop("batch_size", UNSET)

        gradient_accumulation = d.pop("gradient_accumulation", UNSET)

        def _parse_max_length(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_length = _parse_max_length(d.pop("max_length", UNSET))

        warmup_ratio = d.pop("warmup_ratio", UNSET)

        weight_decay = d.pop("weight_decay", UNSET)

        seed = d.pop("seed", UNSET)

        _scheduler = d.pop("scheduler", UNSET)
        scheduler: FinetuneSpecRequestLearningRateSchedule | Unset
        if isinstance(_scheduler, Unset):
            scheduler = UNSET
        else:
            scheduler = check_finetune_spec_request_learning_rate_schedule(_scheduler)

        checkpoint_every_steps = d.pop("checkpoint_every_steps", UNSET)

        log_every_steps = d.pop("log_every_steps", UNSET)

        keep_checkpoints = d.pop("keep_checkpoints", UNSET)

        def _parse_lora(data: object) -> FinetuneSpecRequestLoRA | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                lora_type_0 = FinetuneSpecRequestLoRA.from_dict(data)

                return lora_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(FinetuneSpecRequestLoRA | None | Unset, data)

        lora = _parse_lora(d.pop("lora", UNSET))

        def _parse_qlora(data: object) -> FinetuneSpecRequestQLoRA | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                qlora_type_0 = FinetuneSpecRequestQLoRA.from_dict(data)

                return qlora_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(FinetuneSpecRequestQLoRA | None | Unset, data)

        qlora = _parse_qlora(d.pop("qlora", UNSET))

        def _parse_dpo(data: object) -> FinetuneSpecRequestDPO | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                dpo_type_0 = FinetuneSpecRequestDPO.from_dict(data)

                return dpo_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(FinetuneSpecRequestDPO | None | Unset, data)

        dpo = _parse_dpo(d.pop("dpo", UNSET))

        def _parse_grpo(data: object) -> FinetuneSpecRequestGRPO | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                grpo_type_0 = FinetuneSpecRequestGRPO.from_dict(data)

                return grpo_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(FinetuneSpecRequestGRPO | None | Unset, data)

        grpo = _parse_grpo(d.pop("grpo", UNSET))

        def _parse_parallel(data: object) -> FinetuneSpecRequestParallelPlan | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                parallel_type_0 = FinetuneSpecRequestParallelPlan.from_dict(data)

                return parallel_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(FinetuneSpecRequestParallelPlan | None | Unset, data)

        parallel = _parse_parallel(d.pop("parallel", UNSET))

        _recompute = d.pop("recompute", UNSET)
        recompute: FinetuneSpecRequestRecomputeActivations | Unset
        if isinstance(_recompute, Unset):
            recompute = UNSET
        else:
            recompute = check_finetune_spec_request_recompute_activations(_recompute)

        _communication_dtype = d.pop("communication_dtype", UNSET)
        communication_dtype: FinetuneSpecRequestCommunicationDataType | Unset
        if isinstance(_communication_dtype, Unset):
            communication_dtype = UNSET
        else:
            communication_dtype = check_finetune_spec_request_communication_data_type(
                _communication_dtype
            )

        def _parse_fused_operators(
            data: object,
        ) -> list[FinetuneSpecRequestFusedOperatorsType0Item] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                fused_operators_type_0 = []
                _fused_operators_type_0 = data
                for fused_operators_type_0_item_data in _fused_operators_type_0:
                    fused_operators_type_0_item = (
                        check_finetune_spec_request_fused_operators_type_0_item(
                            fused_operators_type_0_item_data
                        )
                    )

                    fused_operators_type_0.append(fused_operators_type_0_item)

                return fused_operators_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[FinetuneSpecRequestFusedOperatorsType0Item] | None | Unset, data)

        fused_operators = _parse_fused_operators(d.pop("fused_operators", UNSET))

        out_of_memory_retries = d.pop("out_of_memory_retries", UNSET)

        _precision = d.pop("precision", UNSET)
        precision: FinetuneSpecRequestPrecision | Unset
        if isinstance(_precision, Unset):
            precision = UNSET
        else:
            precision = check_finetune_spec_request_precision(_precision)

        train_split = d.pop("train_split", UNSET)

        def _parse_validation_split(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        validation_split = _parse_validation_split(d.pop("validation_split", UNSET))

        def _parse_engine_version(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        engine_version = _parse_engine_version(d.pop("engine_version", UNSET))

        finetune_spec_request = cls(
            objective=objective,
            method=method,
            epochs=epochs,
            max_steps=max_steps,
            learning_rate=learning_rate,
            batch_size=batch_size,
            gradient_accumulation=gradient_accumulation,
            max_length=max_length,
            warmup_ratio=warmup_ratio,
            weight_decay=weight_decay,
            seed=seed,
            scheduler=scheduler,
            checkpoint_every_steps=checkpoint_every_steps,
            log_every_steps=log_every_steps,
            keep_checkpoints=keep_checkpoints,
            lora=lora,
            qlora=qlora,
            dpo=dpo,
            grpo=grpo,
            parallel=parallel,
            recompute=recompute,
            communication_dtype=communication_dtype,
            fused_operators=fused_operators,
            out_of_memory_retries=out_of_memory_retries,
            precision=precision,
            train_split=train_split,
            validation_split=validation_split,
            engine_version=engine_version,
        )

        return finetune_spec_request
