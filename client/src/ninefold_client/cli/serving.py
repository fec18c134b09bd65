"""``deploy`` and ``chat``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import uuid4

import httpx
import typer

from ninefold_client.cli.context import connected
from ninefold_client.cli.output import OutputFormat, OutputOption, print_objects, refuse_progress
from ninefold_client.client import (
    IDEMPOTENCY_KEY,
    Client,
    RetryTransport,
    trusted_certificates,
)
from ninefold_client.configuration import configuration_path, load_configuration, save_configuration
from ninefold_client.errors import ApiError, ConnectionFailed, NinefoldError
from ninefold_client.resources import DEPLOYMENTS, find_model_version, find_object, find_team

KEY_VARIABLE = "NINEFOLD_GATEWAY_KEY"
GATEWAY_VARIABLE = "NINEFOLD_GATEWAY_URL"
_KEY_LIFETIME = timedelta(days=30)
#: A gateway accepts a new key after it has fetched the next snapshot.
_KEY_ACTIVE_WITHIN = 30.0
#: As many as the clients of OpenAI make, for example of a gateway that has no ready endpoint yet.
_GATEWAY_RETRIES = 2


def deploy(
    ctx: typer.Context,
    model_version: Annotated[
        str,
        typer.Argument(
            help='Model version as "model@2" or "model v2", newest one of "model", or uid.'
        ),
    ],
    name: Annotated[str, typer.Option(help="Model name at the gateway; unique in the company.")],
    replicas: Annotated[int, typer.Option(min=1, help="Number of replicas.")] = 1,
    cards: Annotated[
        int | None,
        typer.Option(min=1, help="Cards of one replica. Default: the fewest that hold the model."),
    ] = None,
    chip: Annotated[
        list[str] | None,
        typer.Option(
            help="Acceptable chip; repeat it in order of preference. Default: the chip of the fleet that holds "
            "the model on the fewest cards."
        ),
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="Serving engine. Default: one that supports the chip.")
    ] = None,
    queue: Annotated[str | None, typer.Option(help="Name of the queue. Default: default.")] = None,
    team: Annotated[str | None, typer.Option(help="Owning team. Default: your only team.")] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until all replicas are ready.")
    ] = False,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds to wait.")] = 1800,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Deploy a model version behind the gateway."""
    if wait:
        refuse_progress(output, options="--wait")
    with connected(ctx) as client:
        version = find_model_version(client, model_version, team=team or "")
        given = {"cards": cards, "chips": chip, "engine": engine, "queue": queue}
        body = {
            "name": name,
            "model_version": version["uid"],
            "replicas": replicas,
            **{field: value for field, value in given.items() if value},
            **({"team": find_team(client, team)} if team else {}),
        }
        row = client.post("deployments", body)
        created = f"deployment/{name} created from {version['name']}: {row['uid']}"
        print_objects(
            output,
            row,
            names=[f"deployment/{name}"],
            table=lambda: print(created, flush=True),
        )
        if wait and not wait_for_deployment(client, row["uid"], timeout=timeout):
            raise typer.Exit(1)


def wait_for_deployment(client: Client, uid: str, *, timeout: float) -> bool:
    """Print each change until the deployment is ready or has failed; return whether it is ready.

    :raises NinefoldError: if it is neither in time.
    """
    began, last = time.monotonic(), ""
    while True:
        row = client.get(f"deployments/{uid}")
        message = (row["state_reason"] or {}).get("message", "")
        line = f"{row['state']}  {row['ready_replicas']}/{row['replica_count']} ready  {message}".rstrip()
        if line != last:
            print(f"{time.strftime('%H:%M:%S')}  {row['name']}  {line}", flush=True)
            last = line
        if row["state"] == "ready":
            return True
        if row["state"] in {"failed", "stopped"}:
            return False
        if time.monotonic() - began > timeout:
            raise NinefoldError(
                f"{row['name']} is {row['state']} after {timeout:g} seconds; wait longer with --timeout"
            )
        time.sleep(1)


def predownload(
    ctx: typer.Context,
    model_version: Annotated[
        str,
        typer.Argument(
            help='Model version as "model@2" or "model v2", newest one of "model", or uid.'
        ),
    ],
    cluster: Annotated[str, typer.Option(help="Name of the cluster.")],
    node: Annotated[
        list[str] | None,
        typer.Option(help="Name of a node; repeat it. Default: every node that matches."),
    ] = None,
    chip: Annotated[str | None, typer.Option(help="Only nodes with cards of this chip.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="Only nodes with this label, NAME=VALUE; repeat it."),
    ] = None,
    team: Annotated[str | None, typer.Option(help="Owning team. Default: your only team.")] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the weights are on all nodes.")
    ] = False,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds to wait.")] = 3600,
) -> None:
    """Download the weights of a model version to nodes before a deployment needs them."""
    labels = dict(each.partition("=")[::2] for each in label or ())
    with connected(ctx) as client:
        version = find_model_version(client, model_version, team=team or "")
        given = {"nodes": node, "chip": chip, "labels": labels}
        body = {
            "model_version": version["uid"],
            "cluster": cluster,
            **{field: value for field, value in given.items() if value},
            **({"team": find_team(client, team)} if team else {}),
        }
        rows = client.post("weight-downloads", body)
        for row in rows:
            print(f"{version['name']} to {row['node']}: {row['uid']}", flush=True)
        if wait and not _wait_for_weights(client, rows, timeout=timeout):
            raise typer.Exit(1)


def _wait_for_weights(client: Client, rows: list[dict[str, Any]], *, timeout: float) -> bool:
    """Print the end of each download; return whether all succeeded.

    :raises NinefoldError: if one has not ended in time.
    """
    began, succeeded = time.monotonic(), True
    for uid in [row["uid"] for row in rows]:
        while (row := client.get(f"weight-downloads/{uid}"))["state"] in {
            "pending",
            "running",
            "stopping",
        }:
            if time.monotonic() - began > timeout:
                raise NinefoldError(
                    f"the download to {row['node']} is {row['state']} after {timeout:g} seconds; wait longer "
                    "with --timeout"
                )
            time.sleep(1)
        print(f"{row['node']}  {row['state']}  {row['message']['message']}", flush=True)
        succeeded = succeeded and row["state"] == "succeeded"
    return succeeded


def chat(
    ctx: typer.Context,
    deployment: Annotated[str, typer.Argument(help="Name or uid of the deployment.")],
    message: Annotated[
        list[str] | None,
        typer.Option("--message", "-m", help="Message; repeat it for a dialogue. Default: asks."),
    ] = None,
    system: Annotated[str | None, typer.Option(help="System message.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Maximum output tokens of a response.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            envvar=KEY_VARIABLE, help="Gateway key. Default: one that the client creates."
        ),
    ] = None,
    gateway: Annotated[
        str | None,
        typer.Option(
            envvar=GATEWAY_VARIABLE, help="Address of the gateway. Default: the server's."
        ),
    ] = None,
) -> None:
    """Chat with a deployment; responses are streamed from the OpenAI-compatible gateway."""
    with connected(ctx) as client:
        row = find_object(client, DEPLOYMENTS, deployment)
        if not row["route"]:
            raise NinefoldError(
                f"deployment {row['name']} has no route; its state is {row['state']}"
            )
        base = (gateway.rstrip("/") + "/v1") if gateway else row["gateway_url"]
        messages: list[dict[str, str]] = [{"role": "system", "content": system}] if system else []
        with (
            _gateway_key(client, row, given=key) as bearer,
            _gateway_client() as http,
        ):
            for text in _messages(message):
                messages.append({"role": "user", "content": text})
                body: dict[str, Any] = {"model": row["route"], "messages": messages, "stream": True}
                if max_tokens:
                    body["max_tokens"] = max_tokens
                response = ""
                for part in _streamed(
                    http, f"{base}/chat/completions", body, key=bearer, new=key is None
                ):
                    sys.stdout.write(part)
                    sys.stdout.flush()
                    response += part
                print(flush=True)
                messages.append({"role": "assistant", "content": response})


def _messages(given: list[str] | None) -> Iterator[str]:
    """Iterate over the messages of the options, or else over lines of standard input."""
    if given:
        yield from given
        return
    while True:
        if sys.stdin.isatty():
            print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


@contextmanager
def _gateway_key(client: Client, deployment: dict[str, Any], *, given: str | None) -> Iterator[str]:
    """Yield a gateway key of the deployment's team: the given one, a stored one, or a new one.

    A new key is stored in the context of the configuration file; without a context it is deleted afterwards.
    """
    if given:
        yield given
        return
    team, context = deployment["team"]["uid"], client.credentials.context
    path = configuration_path()
    stored = load_configuration(path).contexts[context].gateway_keys if context else {}
    if team in stored and _is_valid(client, stored[team]["uid"]):
        yield stored[team]["text"]
        return
    expires_at = datetime.now(tz=UTC) + _KEY_LIFETIME
    created = client.post(
        "keys",
        {"name": "ninefold command line", "team": team, "expires_at": expires_at.isoformat()},
    )
    if context:
        configuration = load_configuration(path)
        one = configuration.contexts[context]
        keys = {**one.gateway_keys, team: {"uid": created["uid"], "text": created["text"]}}
        contexts = {**configuration.contexts, context: replace(one, gateway_keys=keys)}
        save_configuration(replace(configuration, contexts=contexts), path=path)
    try:
        yield created["text"]
    finally:
        if not context:
            client.delete(f"keys/{created['uid']}")


def _is_valid(client: Client, uid: str) -> bool:
    try:
        key = client.get(f"keys/{uid}")
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    expires_at = key["expires_at"]
    is_expired = expires_at is not None and datetime.fromisoformat(expires_at) <= datetime.now(
        tz=UTC
    )
    return key["revoked_at"] is None and not is_expired


def _gateway_client() -> httpx.Client:
    """A client that repeats a request without a response, and one that the gateway cannot serve yet."""
    transport = httpx.HTTPTransport(verify=trusted_certificates())
    return httpx.Client(
        timeout=httpx.Timeout(600, connect=10),
        transport=RetryTransport(transport, retries=_GATEWAY_RETRIES),
    )


def _streamed(
    http: httpx.Client, url: str, body: dict[str, Any], *, key: str, new: bool
) -> Iterator[str]:
    """Iterate over the parts of a streamed response.

    :param new: wait until the gateway knows the key.
    :raises ApiError: if the gateway refuses the request.
    :raises ConnectionFailed: if it cannot be reached.
    """
    until = time.monotonic() + (_KEY_ACTIVE_WITHIN if new else 0)
    while True:
        try:
            with http.stream(
                "POST",
                url,
                json=body,
                headers={"Authorization": f"Bearer {key}", IDEMPOTENCY_KEY: uuid4().hex},
            ) as response:
                if response.status_code == 401 and time.monotonic() < until:
                    time.sleep(0.5)
                    continue
                if response.is_error:
                    response.read()
                    raise _gateway_error(response)
                for line in response.iter_lines():
                    data = line.removeprefix("data:").strip()
                    if line.startswith("data:") and data != "[DONE]":
                        yield _content(json.loads(data), status=response.status_code)
                return
        except httpx.TransportError as error:
            raise ConnectionFailed(
                f"the gateway at {url} cannot be reached ({error}); give its address with --gateway"
            ) from error


def _content(event: dict[str, Any], *, status: int) -> str:
    if "error" in event:
        raise ApiError(
            status=status,
            code=str(event["error"].get("code") or "error"),
            message=str(event["error"].get("message")),
        )
    choices = event.get("choices") or [{}]
    return str((choices[0].get("delta") or {}).get("content") or "")


def _gateway_error(response: httpx.Response) -> ApiError:
    try:
        error = response.json()["error"]
        code, message = str(error.get("code") or error.get("type")), str(error["message"])
    except (ValueError, KeyError, TypeError, AttributeError):
        code, message = (
            "unexpected-response",
            f"{response.request.url} returned status {response.status_code}",
        )
    return ApiError(status=response.status_code, code=code, message=message)
