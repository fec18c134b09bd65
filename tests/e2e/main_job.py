"""The main job by REST, against a running product: ``python -m tests.e2e.main_job``.

Uploads the address sample, evaluates the untrained model, fine-tunes it, evaluates the new version on the
same held-out rows, deploys it, and talks to it through the gateway with the official client. Prints a
table of steps with their times and leaves the figures as JSON under ``var/bench``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from openai import AuthenticationError, OpenAI

from tests.e2e.rest_client import RestClient
from tests.e2e.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
MODEL = "ninefold-tiny-qwen2"
METRICS = ("exact_match", "label_accuracy")
ENDED = ("succeeded", "failed", "cancelled")
#: First use: the engine's environment is made, from the network if nothing is cached.
ENGINE_WITHIN = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How much to train. ``full`` is the published figure, ``quick`` what a test can wait for."""

    spec: Mapping[str, Any]
    #: The processor's cards to train on: a thread each. Beside other tests two mostly wait for each other.
    cards: int
    #: Held-out rows to answer; None means all of them.
    evaluated: int | None
    within: float


RECIPES: Mapping[str, Recipe] = {
    "full": Recipe(spec={}, cards=2, evaluated=None, within=1800),
    # Enough to learn which labels an address has; to copy whole addresses takes the full training.
    "quick": Recipe(
        spec={"max_steps": 200, "batch_size": 8, "checkpoint_every_steps": 100},
        cards=1,
        evaluated=32,
        within=1200,
    ),
}


@dataclass(slots=True)
class Report:
    """What happened, step by step."""

    steps: list[tuple[str, float, str]] = field(default_factory=list)
    measurements: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[list[str]]:
        """Time a step; what is appended to the yielded list stands beside it."""
        notes: list[str] = []
        began = time.monotonic()
        print(f"· {name} …", flush=True)
        yield notes
        self.steps.append((name, time.monotonic() - began, "; ".join(notes)))

    def table(self) -> str:
        width = max(len(name) for name, _, _ in self.steps)
        return "\n".join(
            f"{name:<{width}}  {seconds:8.1f} s  {notes}" for name, seconds, notes in self.steps
        )


class MainJob:
    """The steps, in order. Names carry a stamp so that it can be run again and again."""

    def __init__(self, client: RestClient, *, gateway: str, recipe: Recipe) -> None:
        self.client = client
        self.gateway = gateway
        self.recipe = recipe
        self.stamp = f"{time.time_ns() // 1_000_000 % 10**9:x}"
        self.report = Report()

    def run(self) -> Report:
        model = self._base_model()
        dataset = self._upload()
        before = self._evaluate(model, dataset, "the untrained model")
        tuned = self._finetune(model, dataset)
        after = self._evaluate(tuned, dataset, "the tuned model")
        for name in METRICS:
            self.report.measurements[f"{name}_before"] = before[name]
            self.report.measurements[f"{name}_after"] = after[name]
        self.serve(tuned)
        return self.report

    def _base_model(self) -> str:
        with self.report.step("wait for the sample model") as notes:
            versions = wait_until(
                lambda: self.client.get("model-versions", model=MODEL)["results"],
                bool,
                within=ENGINE_WITHIN,
                what="the sample model",
            )
            notes.append(f"{versions[0]['name']}, {versions[0]['parameters']:,} parameters")
        uid: str = versions[0]["uid"]
        return uid

    def _upload(self) -> str:
        with self.report.step("upload the address sample") as notes:
            sample = Path(str(files("ninefold_runtime.samples") / "data" / "addresses.jsonl"))
            version = self.client.upload(
                "datasets", file=sample, name=f"addresses-{self.stamp}", team=self._team()
            )
            notes.append(f"{version['row_count']} rows {version['statistics']['rows_by_split']}")
        uid: str = version["uid"]
        return uid

    def _team(self) -> str:
        uid: str = self.client.get("teams")["results"][0]["uid"]
        return uid

    def _job(self, body: dict[str, Any], *, within: float) -> dict[str, Any]:
        """Submit and wait for the end."""
        job = self.client.post("jobs", {"team": self._team(), **body})
        ended: dict[str, Any] = wait_until(
            lambda: self.client.get(f"jobs/{job['uid']}"),
            lambda seen: seen["state"] in ENDED,
            within=within,
            what=f"the end of {body['name']}",
        )
        if ended["state"] != "succeeded":
            log = self.client.text(f"jobs/{job['uid']}/log", offset=-4000)
            raise RuntimeError(
                f"{ended['name']} {ended['state']}: {ended['state_reason']['message']}\n{log}"
            )
        return ended

    def _evaluate(self, model: str, dataset: str, what: str) -> Mapping[str, float]:
        with self.report.step(f"evaluate {what}") as notes:
            job = self._job(
                {
                    "kind": "evaluate",
                    "name": f"evaluate {what} {self.stamp}",
                    "model_version": model,
                    "dataset_version": dataset,
                    "spec": {
                        "metrics": list(METRICS),
                        "split": "test",
                        "limit": self.recipe.evaluated,
                    },
                },
                within=600,
            )
            evaluation = self.client.get("evaluations", job=job["uid"])["results"][0]
            metrics: Mapping[str, float] = evaluation["metrics"]
            notes.append(", ".join(f"{name} {metrics[name]:.3f}" for name in sorted(metrics)))
        return metrics

    def _finetune(self, model: str, dataset: str) -> str:
        with self.report.step("fine-tune") as notes:
            job = self._job(
                {
                    "kind": "finetune",
                    "name": f"addresses {self.stamp}",
                    "model_version": model,
                    "dataset_version": dataset,
                    "output_name": "address-parser",
                    "cards": self.recipe.cards,
                    "spec": dict(self.recipe.spec),
                },
                within=self.recipe.within,
            )
            points = self.client.get(f"jobs/{job['uid']}/curve")["points"]
            losses = [point["loss"] for point in points if "loss" in point]
            if not losses[-1] < losses[0] / 2:
                raise AssertionError(f"the loss did not fall: {losses[0]} → {losses[-1]}")
            version = self.client.get("model-versions", job=job["uid"])["results"][0]
            notes.append(f"loss {losses[0]:.2f} → {losses[-1]:.3f} in {points[-1]['step']} steps")
            notes.append(version["name"])
        self.report.measurements["finetune_seconds"] = self.report.steps[-1][1]
        uid: str = version["uid"]
        return uid

    def serve(self, version: str) -> None:
        """Deploy the version, chat with it through the gateway, and stop it."""
        name = f"address-parser-{self.stamp}"
        with self.report.step("deploy"):
            deployment = self.client.post(
                "deployments", {"team": self._team(), "name": name, "model_version": version}
            )
            wait_until(
                lambda: self.client.get(f"deployments/{deployment['uid']}"),
                lambda seen: seen["state"] == "ready",
                within=300,
                what="a ready deployment",
            )
        key = self.client.post("keys", {"team": self._team(), "name": f"main job {self.stamp}"})
        with self.report.step("talk to it through the gateway") as notes:
            notes.append(self._talk(name, key["text"]))
        with self.report.step("usage is counted") as notes:
            usage = wait_until(
                lambda: self.client.get("usage", route=name),
                lambda seen: len(seen["results"]) >= 2,
                within=30,
                what="the usage of both calls",
            )
            record = usage["results"][0]
            notes.append(f"{record['prompt_tokens']} + {record['completion_tokens']} tokens")
        with self.report.step("stop it"):
            self.client.post(f"deployments/{deployment['uid']}/stop")
            wait_until(
                lambda: self.client.get(f"deployments/{deployment['uid']}"),
                lambda seen: seen["state"] == "stopped",
                within=90,
                what="a stopped deployment",
            )
            self.client.delete(f"deployments/{deployment['uid']}")

    def _talk(self, name: str, key: str) -> str:
        question: Any = [{"role": "user", "content": "青海省西宁市城北区三其村可以发圆通吗 谢谢"}]
        asked: Any = {"model": name, "messages": question, "max_tokens": 96, "temperature": 0}
        with talking_client(self.gateway, key=key, model=name) as client:
            whole = client.chat.completions.create(**asked).choices[0].message.content
            pieces = [
                choice.delta.content
                for chunk in client.chat.completions.create(**asked, stream=True)
                for choice in chunk.choices
                if choice.delta.content
            ]
        streamed = "".join(pieces)
        if streamed != whole:
            raise AssertionError(f"streamed {streamed!r}, whole {whole!r}")
        return f"{len(pieces)} pieces: {streamed}"


@contextmanager
def talking_client(gateway: str, *, key: str, model: str) -> Iterator[OpenAI]:
    """The official client, once the gateway knows the key and the model: news reach it within moments."""

    def known() -> bool:
        try:
            return model in [one.id for one in client.models.list()]
        except AuthenticationError:
            return False

    with OpenAI(base_url=f"{gateway}/v1", api_key=key, max_retries=6) as client:
        wait_until(known, bool, within=30, what="a gateway that knows the key and the model")
        yield client


def main() -> int:
    parser = argparse.ArgumentParser(prog="main_job", description=__doc__.partition("\n")[0])
    parser.add_argument("--recipe", choices=sorted(RECIPES), default="quick")
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
    report = MainJob(client, gateway=options.gateway, recipe=RECIPES[options.recipe]).run()
    print(report.table())
    print(json.dumps(report.measurements))
    results = home / "bench"
    results.mkdir(exist_ok=True)
    (results / f"main-job-{options.recipe}.json").write_text(
        json.dumps({"figures": report.measurements, "steps": report.steps}, indent=2)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
