"""The whole way as one submission, by REST, against a running product: ``python -m tests.e2e.main_pipeline``.

Fine-tune, evaluate, quantize, evaluate again, deploy: submitted once, followed step by step, and talked to at the
end. Then a second pipeline whose gate cannot be passed: it is held, and approved anyway.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.e2e.main_job import ENGINE_WITHIN, ROOT, MainJob, Recipe, talking_client
from tests.e2e.rest_client import RestClient
from tests.e2e.waiting import wait_until

QUESTION = "青海省西宁市城北区三其村可以发圆通吗 谢谢"
RESTING = ("succeeded", "failed", "cancelled", "held")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much to train and to measure."""

    training: Mapping[str, Any]
    rows: int
    within: float


SIZES: Mapping[str, Size] = {
    "full": Size(training={}, rows=256, within=2400),
    # What such a model answers is poor; that it answers, and by way of which steps, is what counts.
    "quick": Size(training={"max_steps": 60, "checkpoint_every_steps": 30}, rows=12, within=1200),
}


class MainPipeline(MainJob):
    """The steps, in order, on top of what the main job prepares."""

    def __init__(self, client: RestClient, *, gateway: str, size: Size) -> None:
        recipe = Recipe(spec=size.training, cards=1, evaluated=size.rows, within=size.within)
        super().__init__(client, gateway=gateway, recipe=recipe)
        self.size = size
        self.name = f"address-parser-{self.stamp}"

    def follow(self) -> dict[str, Any]:
        """The pipeline that has served an answer, as REST tells of it at its end."""
        model, dataset = self._base_model(), self._upload()
        with self.report.step("submit") as notes:
            submitted = self.client.post("pipelines", self._body(model, dataset))
            notes.append(" → ".join(step["kind"] for step in submitted["steps"]))
        ended = self._rests(submitted["uid"], within=self.size.within + ENGINE_WITHIN)
        self.report.steps += [_step_result(step) for step in ended["steps"]]
        if ended["state"] != "succeeded":
            raise RuntimeError(self._failure_text(ended))
        key = self.client.post("keys", {"team": self._team(), "name": f"pipeline {self.stamp}"})
        with self.report.step("talk to the quantized version") as notes:
            notes.append(self._answer(key["text"]))
        self._hold_and_override(model, dataset)
        return ended

    def _body(self, model: str, dataset: str) -> dict[str, Any]:
        measured = {"metrics": ["exact_match"], "split": "test", "limit": self.size.rows}
        return {
            "team": self._team(),
            "name": f"the whole way {self.stamp}",
            "model_version": model,
            "steps": [
                {
                    "kind": "finetune",
                    "dataset_version": dataset,
                    "output_name": self.name,
                    "cards": self.recipe.cards,
                    "spec": dict(self.size.training),
                },
                {
                    "kind": "evaluate",
                    "dataset_version": dataset,
                    "spec": measured,
                    "gate": {"metric": "exact_match", "threshold": 0.0},
                },
                {
                    "kind": "quantize",
                    "dataset_version": dataset,
                    "output_name": f"{self.name}-w8a8",
                    "spec": {
                        "scheme": "w8a8-smoothquant",
                        "calibration_rows": 32,
                        "limit": self.size.rows,
                        "metrics": ["perplexity", "exact_match"],
                        # How good a model of a few minutes' training is, is not what is tested.
                        "tolerance": {"perplexity_increase": 10, "accuracy_drop": 1},
                    },
                    "gate": {"metric": "accepted"},
                },
                {"kind": "evaluate", "dataset_version": dataset, "spec": measured},
                {"kind": "deploy", "deployment_name": self.name},
            ],
        }

    def _rests(self, uid: str, *, within: float) -> dict[str, Any]:
        """Wait until it runs no more."""
        found: dict[str, Any] = wait_until(
            lambda: self.client.get(f"pipelines/{uid}"),
            lambda seen: seen["state"] in RESTING,
            within=within,
            what="the end of the pipeline",
        )
        return found

    def _failure_text(self, ended: Mapping[str, Any]) -> str:
        """Why it did not end well, with the last lines of the job that it stands at."""
        text = f"{ended['state']}: {ended['state_reason']['message']}"
        for step in ended["steps"]:
            if step["state"] == "failed" and step["job"]:
                text += "\n" + self.client.text(f"jobs/{step['job']['uid']}/log", offset=-4000)
        return text

    def _answer(self, key: str) -> str:
        question: Any = [{"role": "user", "content": QUESTION}]
        with talking_client(self.gateway, key=key, model=self.name) as client:
            answer = client.chat.completions.create(
                model=self.name, messages=question, max_tokens=64, temperature=0
            )
        text = answer.choices[0].message.content or ""
        if not text.strip():
            raise AssertionError("the quantized version answered nothing")
        return text

    def _hold_and_override(self, model: str, dataset: str) -> None:
        """A gate that nothing passes holds a pipeline of the same model, until a user approves it anyway."""
        step = {
            "kind": "evaluate",
            "dataset_version": dataset,
            "spec": {"metrics": ["exact_match"], "split": "test", "limit": 4},
        }
        gate = {"metric": "exact_match", "threshold": 1.0}
        body = {
            "team": self._team(),
            "name": f"held {self.stamp}",
            "model_version": model,
            "steps": [{**step, "gate": gate}, step],
        }
        with self.report.step("a gate holds a second one") as notes:
            uid = self.client.post("pipelines", body)["uid"]
            held = self._rests(uid, within=600)
            if held["state"] != "held":
                raise RuntimeError(self._failure_text(held))
            notes.append(held["state_reason"]["message"])
        with self.report.step("it is approved anyway") as notes:
            self.client.post(
                f"pipelines/{uid}/gate-override", {"reason": "the base is meant to be bad"}
            )
            ended = self._rests(uid, within=600)
            if ended["state"] != "succeeded":
                raise RuntimeError(self._failure_text(ended))
            notes.append(ended["steps"][0]["override_reason"])


def _step_result(step: Mapping[str, Any]) -> tuple[str, float, str]:
    """The step's name, how many seconds it took, waiting for cards included, and what came of it."""
    began, ended = (
        datetime.fromisoformat(step[name]) if step[name] else None
        for name in ("began_at", "ended_at")
    )
    seconds = (ended - began).total_seconds() if began and ended else 0.0
    return (
        f"{step['number']}. {step['kind']}",
        seconds,
        step["gate_verdict"]["message"] or step["state_reason"]["message"],
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="main_pipeline", description=__doc__.partition("\n")[0])
    parser.add_argument("--size", choices=sorted(SIZES), default="quick")
    parser.add_argument(
        "--web", default=f"http://127.0.0.1:{os.environ.get('NINEFOLD_WEB_PORT', '8000')}"
    )
    parser.add_argument(
        "--gateway", default=f"http://127.0.0.1:{os.environ.get('NINEFOLD_GATEWAY_PORT', '8001')}"
    )
    options = parser.parse_args()
    home = Path(os.environ.get("NINEFOLD_HOME", ROOT / "var"))
    password = (home / "secrets" / "admin_password").read_text().strip()
    client = RestClient(options.web, username="admin", password=password)
    line = MainPipeline(client, gateway=options.gateway, size=SIZES[options.size])
    ended = line.follow()
    print(line.report.table())
    print(json.dumps({step["number"]: step["metrics"] for step in ended["steps"]}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
