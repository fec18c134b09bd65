"""What the trainer tells the world while it runs, and how it is stopped.

One callback: progress at each logging step, a sealed checkpoint at each save, an end at the next step
once the process was asked to stop.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from ninefold_runtime import checkpoints
from ninefold_runtime.report import Reporter
from ninefold_runtime.signals import StopRequest

#: What trainers of preferences and rewards log beside the loss → the names under which it is reported.
_FIGURES = {
    "rewards/accuracies": "preference_accuracy",
    "rewards/margins": "preference_margin",
    "reward": "reward",
    "completions/mean_length": "answer_tokens",
}


class Observer(TrainerCallback):
    """Reports a run; ``evaluation`` is the newest validation loss."""

    def __init__(self, *, reporter: Reporter, stop: StopRequest, keep_checkpoints: int) -> None:
        self._reporter = reporter
        self._stop = stop
        self._keep = keep_checkpoints
        self._began_at = 0.0
        self._began_step = 0
        self._tokens_at_last = 0.0
        self._last_at = 0.0
        #: The newest training loss and validation loss.
        self.loss: float | None = None
        self.evaluation: float | None = None
        self.evaluated_step = -1
        #: The newest of what was logged beside the loss.
        self.figures: dict[str, float] = {}

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        self._began_at = self._last_at = time.monotonic()
        self._began_step = state.global_step
        self._tokens_at_last = float(state.num_input_tokens_seen or 0)

    def on_step_end(self, _args: Any, _state: Any, control: Any, **_: Any) -> None:
        if self._stop.requested:
            control.should_save = True
            control.should_evaluate = False
            control.should_training_stop = True

    def on_log(
        self, _args: Any, state: Any, _control: Any, logs: dict[str, Any] | None = None, **_: Any
    ) -> None:
        logs = logs or {}
        if "eval_loss" in logs:
            self.evaluation = float(logs["eval_loss"])
            self.evaluated_step = state.global_step
            self._report(state, eval_loss=self.evaluation)
        elif "loss" in logs:
            self.loss = float(logs["loss"])
            self.figures = {name: float(logs[key]) for key, name in _FIGURES.items() if key in logs}
            self._report(
                state,
                loss=self.loss,
                **self.figures,
                learning_rate=float(logs.get("learning_rate", 0.0)),
                tokens_per_second=self._tokens_per_second(state),
            )

    def on_save(self, args: Any, state: Any, _control: Any, **_: Any) -> None:
        root = Path(args.output_dir)
        folder = root / f"checkpoint-{state.global_step}"
        checkpoints.seal(folder)
        checkpoints.keep_newest(root, count=self._keep)
        self._reporter.checkpoint(step=state.global_step)

    def _report(self, state: Any, **values: float | None) -> None:
        self._reporter.progress(
            step=state.global_step,
            total_steps=state.max_steps,
            epoch=round(float(state.epoch or 0.0), 3),
            **values,
            eta_seconds=self._eta_seconds(state),
        )

    def _eta_seconds(self, state: Any) -> float | None:
        done = state.global_step - self._began_step
        if done <= 0:
            return None
        elapsed = time.monotonic() - self._began_at
        return round(float(elapsed / done * (state.max_steps - state.global_step)), 1)

    def _tokens_per_second(self, state: Any) -> float | None:
        now, tokens = time.monotonic(), float(state.num_input_tokens_seen or 0)
        elapsed, counted = now - self._last_at, tokens - self._tokens_at_last
        self._last_at, self._tokens_at_last = now, tokens
        return round(counted / elapsed, 1) if elapsed > 0 and counted > 0 else None
