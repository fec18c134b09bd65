from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.finetune_spec_dpo import FinetuneSpecDPO
    from ..models.finetune_spec_grpo import FinetuneSpecGRPO
    from ..models.finetune_spec_lo_ra import FinetuneSpecLoRA
    from ..models.finetune_spec_parallel_plan import FinetuneSpecParallelPlan
    from ..models.finetune_spec_q_lo_ra import FinetuneSpecQLoRA


T = TypeVar("T", bound="FinetuneSpec")


@_attrs_define
class FinetuneSpec:
    """Fields of the engines with the task finetune."""

    objective: None | str | Unset = UNSET
    method: None | str | Unset = UNSET
    epochs: float | None | Unset = UNSET
    max_steps: int | None | Unset = UNSET
    learning_rate: float | None | Unset = UNSET
    batch_size: int | None | Unset = UNSET
    gradient_accumulation: int | None | Unset = UNSET
    max_length: int | None | Unset = UNSET
    warmup_ratio: float | None | Unset = UNSET
    weight_decay: float | None | Unset = UNSET
    seed: int | None | Unset = UNSET
    scheduler: None | str | Unset = UNSET
    checkpoint_every_steps: int | None | Unset = UNSET
    log_every_steps: int | None | Unset = UNSET
    keep_checkpoints: int | None | Unset = UNSET
    lora: FinetuneSpecLoRA | None | Unset = UNSET
    qlora: FinetuneSpecQLoRA | None | Unset = UNSET
    dpo: FinetuneSpecDPO | None | Unset = UNSET
    grpo: FinetuneSpecGRPO | None | Unset = UNSET
    parallel: FinetuneSpecParallelPlan | None | Unset = UNSET
    recompute: None | str | Unset = UNSET
    communication_dtype: None | str | Unset = UNSET
    fused_operators: list[str] | None | Unset = UNSET
    out_of_memory_retries: int | None | Unset = UNSET
    precision: None | str | Unset = UNSET
    train_split: None | str | Unset = UNSET
    validation_split: None | str | Unset = UNSET
    engine_version: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.finetune_spec_dpo import FinetuneSpecDPO
        from ..models.finetune_spec_grpo import FinetuneSpecGRPO
        from ..models.finetune_spec_lo_ra import FinetuneSpecLoRA
        from ..models.finetune_spec_parallel_plan import FinetuneSpecParallelPlan
        from ..models.finetune_spec_q_lo_ra import FinetuneSpecQLoRA

        objective: None | str | Unset
        if isinstance(self.objective, Unset):
            objective = UNSET
        else:
            objective = self.objective

        method: None | str | Unset
        if isinstance(self.method, Unset):
            method = UNSET
        else:
            method = self.method

        epochs: float | None | Unset
        if isinstance(self.epochs, Unset):
            epochs = UNSET
        else:
            epochs = self.epochs

        max_steps: int | None | Unset
        if isinstance(self.max_steps, Unset):
            max_steps = UNSET
        else:
            max_steps = self.max_steps

        learning_rate: float | None | Unset
        if isinstance(self.learning_rate, Unset):
            learning_rate = UNSET
        else:
            learning_rate = self.learning_rate

        batch_size: int | None | Unset
        if isinstance(self.batch_size, Unset):
            batch_size = UNSET
        else:
            batch_size = self.batch_size

        gradient_accumulation: int | None | Unset
        if isinstance(self.gradient_accumulation, Unset):
            gradient_accumulation = UNSET
        else:
            gradient_accumulation = self.gradient_accumulation

        max_length: int | None | Unset
        if isinstance(self.max_length, Unset):
            max_length = UNSET
        else:
            max_length = self.max_length

        warmup_ratio: float | None | Unset
        if isinstance(self.warmup_ratio, Unset):
            warmup_ratio = UNSET
        else:
            warmup_ratio = self.warmup_ratio

        weight_decay: float | None | Unset
        if isinstance(self.weight_decay, Unset):
            weight_decay = UNSET
        else:
            weight_decay = self.weight_decay

        seed: int | None | Unset
        if isinstance(self.seed, Unset):
            seed = UNSET
        else:
            seed = self.seed

        scheduler: None | str | Unset
        if isinstance(self.scheduler, Unset):
            scheduler = UNSET
        else:
            scheduler = self.scheduler

        checkpoint_every_steps: int | None | Unset
        if isinstance(self.checkpoint_every_steps, Unset):
            checkpoint_every_steps = UNSET
        else:
            checkpoint_every_steps = self.checkpoint_every_steps

        log_every_steps: int | None | Unset
        if isinstance(self.log_every_steps, Unset):
            log_every_steps = UNSET
        else:
            log_every_steps = self.log_every_steps

        keep_checkpoints: int | None | Unset
        if isinstance(self.keep_checkpoints, Unset):
            keep_checkpoints = UNSET
        else:
            keep_checkpoints = self.keep_checkpoints

        lora: dict[str, Any] | None | Unset
        if isinstance(self.lora, Unset):
            lora = UNSET
        elif isinstance(self.lora, FinetuneSpecLoRA):
            lora = self.lora.to_dict()
        else:
            lora = self.lora

        qlora: dict[str, Any] | None | Unset
        if isinstance(self.qlora, Unset):
            qlora = UNSET
        elif isinstance(self.qlora, FinetuneSpecQLoRA):
            qlora = self.qlora.to_dict()
        else:
            qlora = self.qlora

        dpo: dict[str, Any] | None | Unset
        if isinstance(self.dpo, Unset):
            dpo = UNSET
        elif isinstance(self.dpo, FinetuneSpecDPO):
            dpo = self.dpo.to_dict()
        else:
            dpo = self.dpo

        grpo: dict[str, Any] | None | Unset
        if isinstance(self.grpo, Unset):
            grpo = UNSET
        elif isinstance(self.grpo, FinetuneSpecGRPO):
            grpo = self.grpo.to_dict()
        else:
            grpo = self.grpo

        parallel: dict[str, Any] | None | Unset
        if isinstance(self.parallel, Unset):
            parallel = UNSET
        elif isinstance(self.parallel, FinetuneSpecParallelPlan):
            parallel = self.parallel.to_dict()
        else:
            parallel = self.parallel

        recompute: None | str | Unset
        if isinstance(self.recompute, Unset):
            recompute = UNSET
        else:
            recompute = self.recompute

        communication_dtype: None | str | Unset
        if isinstance(self.communication_dtype, Unset):
            communication_dtype = UNSET
        else:
            communication_dtype = self.communication_dtype

        fused_operators: list[str] | None | Unset
        if isinstance(self.fused_operators, Unset):
            fused_operators = UNSET
        elif isinstance(self.fused_operators, list):
            fused_operators = self.fused_operators

        else:
            fused_operators = self.fused_operators

        out_of_memory_retries: int | None | Unset
        if isinstance(self.out_of_memory_retries, Unset):
            out_of_memory_retries = UNSET
        else:
            out_of_memory_retries = self.out_of_memory_retries

        precision: None | str | Unset
        if isinstance(self.precision, Unset):
            precision = UNSET
        else:
            precision = self.precision

        train_split: None | str | Unset
        if isinstance(self.train_split, Unset):
            train_split = UNSET
        else:
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
        from ..models.finetune_spec_dpo import FinetuneSpecDPO
        from ..models.finetune_spec_grpo import FinetuneSpecGRPO
        from ..models.finetune_spec_lo_ra import FinetuneSpecLoRA
        from ..models.finetune_spec_parallel_plan import FinetuneSpecParallelPlan
        from ..models.finetune_spec_q_lo_ra import FinetuneSpecQLoRA

        d = dict(src_dict)

        def _parse_objective(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        objective = _parse_objective(d.pop("objective", UNSET))

        def _parse_method(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        method = _parse_method(d.pop("method", UNSET))

        def _parse_epochs(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        epochs = _parse_epochs(d.pop("epochs", UNSET))

        def _parse_max_steps(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_steps = _parse_max_steps(d.pop("max_steps", UNSET))

        def _parse_learning_rate(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        learning_rate = _parse_learning_rate(d.pop("learning_rate", UNSET))

        def _parse_batch_size(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        batch_size = _parse_batch_size(d.pop("batch_size", UNSET))

        def _parse_gradient_accumulation(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        gradient_accumulation = _parse_gradient_accumulation(d.pop("gradient_accumulation", UNSET))

        def _parse_max_length(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_length = _parse_max_length(d.pop("max_length", UNSET))

        def _parse_warmup_ratio(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        warmup_ratio = _parse_warmup_ratio(d.pop("warmup_ratio", UNSET))

        def _parse_weight_decay(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        weight_decay = _parse_weight_decay(d.pop("weight_decay", UNSET))

        def _parse_seed(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        seed = _parse_seed(d.pop("seed", UNSET))

        def _parse_scheduler(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        scheduler = _parse_scheduler(d.pop("scheduler", UNSET))

        def _parse_checkpoint_every_steps(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        checkpoint_every_steps = _parse_checkpoint_every_steps(
            d.pop("checkpoint_every_steps", UNSET)
        )

        def _parse_log_every_steps(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        log_every_steps = _parse_log_every_steps(d.pop("log_every_steps", UNSET))

        def _parse_keep_checkpoints(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        keep_checkpoints = _parse_keep_checkpoints(d.pop("keep_checkpoints", UNSET))

        def _parse_lora(data: object) -> FinetuneSpecLoRA | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                lora_type_0 = FinetuneSpecLoRA.from_dict(data)

                return lora_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(FinetuneSpecLoRA | None | Unset, data)

        lora = _parse_lora(d.pop("lora", UNSET))

        def _parse_qlora(data: object) -> FinetuneSpecQLoRA | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                qlora_type_0 = FinetuneSpecQLoRA.from_dict(data)

                return qlora_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(FinetuneSpecQLoRA | None | Unset, data)

        qlora = _parse_qlora(d.pop("qlora", UNSET))

        def _parse_dpo(data: object) -> FinetuneSpecDPO | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                dpo_type_0 = FinetuneSpecDPO.from_dict(data)

                return dpo_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(FinetuneSpecDPO | None | Unset, data)

        dpo = _parse_dpo(d.pop("dpo", UNSET))

        def _parse_grpo(data: object) -> FinetuneSpecGRPO | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                grpo_type_0 = FinetuneSpecGRPO.from_dict(data)

                return grpo_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(FinetuneSpecGRPO | None | Unset, data)

        grpo = _parse_grpo(d.pop("grpo", UNSET))

        def _parse_parallel(data: object) -> FinetuneSpecParallelPlan | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                parallel_type_0 = FinetuneSpecParallelPlan.from_dict(data)

                return parallel_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(FinetuneSpecParallelPlan | None | Unset, data)

        parallel = _parse_parallel(d.pop("parallel", UNSET))

        def _parse_recompute(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        recompute = _parse_recompute(d.pop("recompute", UNSET))

        def _parse_communication_dtype(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        communication_dtype = _parse_communication_dtype(d.pop("communication_dtype", UNSET))

        def _parse_fused_operators(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                fused_operators_type_0 = cast(list[str], data)

                return fused_operators_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        fused_operators = _parse_fused_operators(d.pop("fused_operators", UNSET))

        def _parse_out_of_memory_retries(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        out_of_memory_retries = _parse_out_of_memory_retries(d.pop("out_of_memory_retries", UNSET))

        def _parse_precision(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        precision = _parse_precision(d.pop("precision", UNSET))

        def _parse_train_split(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        train_split = _parse_train_split(d.pop("train_split", UNSET))

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

        finetune_spec = cls(
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

        return finetune_spec
