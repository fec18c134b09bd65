"""``apply``, ``diff`` and ``delete``."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
import yaml

from ninefold_client.apply import (
    KINDS,
    ApplyAction,
    Plan,
    apply_manifest,
    in_order,
    source_documents,
)
from ninefold_client.apply_sets import (
    ApplySet,
    PrunedObject,
    SetMember,
    members_of,
    objects_to_prune,
    open_set,
    validate_deletion,
)
from ninefold_client.cli.context import connected, error_lines
from ninefold_client.cli.jobs import wait_for_job
from ninefold_client.cli.models import wait_for_import
from ninefold_client.cli.objects import (
    RESOURCE_HELP,
    FileOption,
    complete_deletable_resource,
    manifests_of,
)
from ninefold_client.cli.output import print_error
from ninefold_client.cli.serving import wait_for_deployment
from ninefold_client.client import Client
from ninefold_client.errors import ManifestError, NinefoldError
from ninefold_client.kinds.registry import ModelKind
from ninefold_client.manifests import Manifest
from ninefold_client.resources import JOBS, find_object, resource_by_name

SetOption = Annotated[
    str | None,
    typer.Option("--set", help="Name of the apply set, which remembers the objects for --prune."),
]
TeamOption = Annotated[
    str | None,
    typer.Option(
        "--team",
        help="Team that owns the set. Default: the company for operators, else your only team.",
    ),
]
PruneOption = Annotated[
    bool,
    typer.Option(
        "--prune", help="Delete objects that the set applied before and that no document has now."
    ),
]
YesOption = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask before something that runs is deleted.")
]


def apply(
    ctx: typer.Context,
    filename: FileOption,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Change nothing; the server validates every change, and the permissions for it.",
        ),
    ] = False,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait",
            help="Wait until models are imported, jobs have ended and deployments are ready; in their order.",
        ),
    ] = False,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds to wait for each import, job and deployment.")
    ] = 3600,
    prune: PruneOption = False,
    set_name: SetOption = None,
    team: TeamOption = None,
    yes: YesOption = False,
) -> None:
    """Create the objects of the documents, or change those that differ. A second apply changes nothing."""
    _require_set_name(prune=prune, set_name=set_name, team=team)
    manifests = _documents(filename, prune=prune)
    if not manifests:
        return
    suffix = " (dry run)" if dry_run else ""
    with connected(ctx) as client:
        record = open_set(client, name=set_name, team=team) if set_name else None
        run = _Run(client, manifests, dry_run=dry_run)
        try:
            for manifest in manifests:
                if wait and not dry_run:
                    run.wait_for_sources(manifest, timeout=timeout)
                plan = run.apply(manifest)
                if plan:
                    print(f"{manifest} {plan.action}{suffix}", flush=True)
        finally:
            # After a failure as well: what was created must not be forgotten.
            if record and not dry_run:
                record.record([*record.members, *members_of(run.plans)])
        if record and prune:
            _prune(client, record, run, dry_run=dry_run, yes=yes)
        if wait and not dry_run:
            run.wait(timeout=timeout)
    if run.failed:
        raise typer.Exit(1)


def _documents(filename: str, *, prune: bool) -> list[Manifest]:
    """Return the documents in the order of their application; print a note if there are none.

    :raises ManifestError: if there are none and the rest of a set would be deleted.
    """
    manifests = in_order(manifests_of(filename))
    source = "standard input" if filename == "-" else filename
    if not manifests and prune:
        # The output of a command that failed is empty, too.
        raise ManifestError(
            f"{source} contains no document; --prune would delete all objects of the set. Use: ninefold delete"
        )
    if not manifests:
        print_error(f"{source} contains no document; nothing to apply.")
    return manifests


class _Run:
    """The documents of one command. A document that fails is reported, and the others go on."""

    def __init__(self, client: Client, manifests: list[Manifest], *, dry_run: bool) -> None:
        self._client, self._manifests, self._dry_run = client, manifests, dry_run
        self._awaited: set[str] = set()
        self.plans: list[Plan] = []
        self.failed = False

    def validate_deletions(self, stale: list[PrunedObject]) -> list[PrunedObject]:
        """Let the server validate the deletions of a dry run; return those that it does not refuse."""
        plans = (plan for plan in self.plans if plan.action is not ApplyAction.UNCHANGED)
        changed = {plan.manifest.kind for plan in plans}
        accepted = []
        for one in stale:
            try:
                refused = validate_deletion(one, changed=changed)
            except NinefoldError as error:
                self.report(one.member, error)
                continue
            if refused:
                print_error(
                    f"{one.member}: Warning: {refused}. Objects are changed or deleted before it, so apply may "
                    "delete it"
                )
            accepted.append(one)
            changed.add(one.member.kind)
        return accepted

    def apply(self, manifest: Manifest) -> Plan | None:
        """Apply a document; None if it failed."""
        try:
            plan = apply_manifest(
                self._client,
                manifest,
                dry_run=self._dry_run,
                beside=self._manifests,
                before=self.plans,
            )
        except NinefoldError as error:
            self.report(manifest, error)
            return None
        self.plans.append(plan)
        if plan.refused_alone:
            print_error(
                f"{manifest}: Warning: {plan.refused_alone}. The documents before it change the same tree, so "
                "apply may accept it"
            )
        return plan

    def wait_for_sources(self, manifest: Manifest, *, timeout: float) -> None:
        """Wait for the imports and jobs of the set whose model the document uses."""
        for source in source_documents(manifest, self._manifests):
            self._wait_for(source, timeout=timeout)

    def wait(self, *, timeout: float) -> None:
        """Wait for all imports, jobs and deployments of the set."""
        for plan in self.plans:
            self._wait_for(plan.manifest, timeout=timeout)

    def _wait_for(self, manifest: Manifest, *, timeout: float) -> None:
        plan = next((one for one in self.plans if one.manifest is manifest), None)
        if plan is None or str(manifest) in self._awaited:
            return
        self._awaited.add(str(manifest))
        try:
            if manifest.kind == "Job":
                succeeded = wait_for_job(self._client, plan.uid, timeout=timeout)
            elif manifest.kind == "Deployment":
                succeeded = wait_for_deployment(self._client, plan.uid, timeout=timeout)
            elif manifest.is_import:
                started = any(one.field.startswith("source") for one in plan.differences)
                kind = ModelKind(self._client)
                uid = kind.imported_version(manifest, uid=plan.uid, just_started=started)
                wait_for_import(self._client, uid, timeout=timeout)
                succeeded = True
            else:
                return
        except NinefoldError as error:
            self.report(manifest, error)
        else:
            self.failed = self.failed or not succeeded

    def report(self, failed: Manifest | SetMember, error: NinefoldError) -> None:
        """Print the error of a document or of an object that is deleted."""
        self.failed = True
        first, *more = error_lines(error)
        print_error("\n".join([f"{failed}: {first}", *more]))


def _require_set_name(*, prune: bool, set_name: str | None, team: str | None) -> None:
    if set_name == "" or (prune and not set_name):
        raise typer.BadParameter(
            "--prune needs --set NAME: only objects that the same set applied before are deleted"
        )
    if team and not set_name:
        raise typer.BadParameter("--team is the owner of a set; give its name with --set")


def _prune(client: Client, record: ApplySet, run: _Run, *, dry_run: bool, yes: bool) -> None:
    """Delete what the set had before, and forget it.

    :raises NinefoldError: if something runs and nobody confirms its deletion.
    """
    if run.failed:
        print_error("Nothing was pruned, because a document failed.")
        return
    applied = members_of(run.plans)
    stale = objects_to_prune(client, recorded=record.members, applied=applied)
    deleted = [one for one in stale if not one.kept]
    for one in stale:
        print(f"{one.member} {_fate(one)}", flush=True)
    if dry_run:
        for one in run.validate_deletions(deleted):
            print(f"{one.member} deleted (dry run)", flush=True)
        return
    _confirm(deleted, yes=yes)
    remaining: list[SetMember] = []
    for one in deleted:
        try:
            one.kind.delete(one.member.uid)
        except NinefoldError as error:
            remaining.append(one.member)
            run.report(one.member, error)
        else:
            print(f"{one.member} deleted", flush=True)
    record.record([*applied, *remaining])


def _fate(one: PrunedObject) -> str:
    if one.kept:
        return f"is no longer part of the set and stays: {one.kept}"
    return f"will be deleted; it is {one.interrupted}" if one.interrupted else "will be deleted"


def _confirm(deleted: list[PrunedObject], *, yes: bool) -> None:
    running = ", ".join(f"{one.member} ({one.interrupted})" for one in deleted if one.interrupted)
    if not running or yes:
        return
    if sys.stdin.isatty():
        typer.confirm(f"Delete {running}?", abort=True)
        return
    raise NinefoldError(
        f"nothing was deleted, because this interrupts {running}. Confirm with --yes"
    )


def diff(
    ctx: typer.Context,
    filename: FileOption,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 if there are differences.")
    ] = False,
    prune: PruneOption = False,
    set_name: SetOption = None,
    team: TeamOption = None,
) -> None:
    """Show what "apply" would create, change and, with --prune, delete."""
    _require_set_name(prune=prune, set_name=set_name, team=team)
    manifests = _documents(filename, prune=prune)
    if not manifests:
        return
    stale: list[PrunedObject] = []
    with connected(ctx) as client:
        run = _Run(client, manifests, dry_run=True)
        for manifest in manifests:
            plan = run.apply(manifest)
            if plan and plan.action is not ApplyAction.UNCHANGED:
                _print_plan(plan)
        if prune and set_name and not run.failed:
            recorded = open_set(client, name=set_name, team=team).members
            found = objects_to_prune(client, recorded=recorded, applied=members_of(run.plans))
            stale = run.validate_deletions([one for one in found if not one.kept])
    for one in stale:
        print(f"{one.member} (deleted)")
    differing = any(plan.action is not ApplyAction.UNCHANGED for plan in run.plans)
    if run.failed or (exit_code and (differing or stale)):
        raise typer.Exit(1)


def _print_plan(plan: Plan) -> None:
    print(f"{plan.manifest} ({'new' if plan.action is ApplyAction.CREATED else 'changed'})")
    for one in plan.differences:
        if plan.action is ApplyAction.CONFIGURED:
            print(f"- {one.field}: {_flow(one.before)}")
        print(f"+ {one.field}: {_flow(one.after)}")


def _flow(value: Any) -> str:
    text = yaml.safe_dump(
        value, default_flow_style=True, allow_unicode=True, width=10_000, sort_keys=False
    )
    return text.removesuffix("\n").removesuffix("\n...")


def delete(
    ctx: typer.Context,
    resource: Annotated[
        str, typer.Argument(help=RESOURCE_HELP, autocompletion=complete_deletable_resource)
    ],
    name: Annotated[str, typer.Argument(help="Name or uid.")],
    yes: YesOption = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Delete nothing; the server validates the deletion."),
    ] = False,
) -> None:
    """Delete an object. A deployment ends its requests first; a gateway key or token is revoked."""
    found = resource_by_name(resource)
    if found is JOBS:
        raise typer.BadParameter("jobs stay as records. Use: ninefold job cancel")
    if not found.kind:
        raise typer.BadParameter(f"{found.name} cannot be deleted by this command")
    with connected(ctx) as client:
        kind = KINDS[found.kind](client)
        if kind.not_deleted:
            raise NinefoldError(f"{found.name} are not deleted: {kind.not_deleted}")
        row = find_object(client, found, name, unique=True, is_current=kind.is_current)
        member = SetMember(kind=kind.name, uid=kind.uid(row), name=found.name_of(row))
        (one,) = objects_to_prune(client, recorded=[member], applied=[]) or (None,)
        if one is None:
            raise NinefoldError(f"{member} was deleted or revoked before, or has expired")
        if dry_run:
            validate_deletion(one)
        else:
            _confirm([one], yes=yes)
            kind.delete(member.uid)
    print(f"{found.singular}/{member.name} deleted{' (dry run)' if dry_run else ''}")
