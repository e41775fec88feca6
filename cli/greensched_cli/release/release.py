"""`greensched release`: start some or all held work now, independently of the operator."""

import asyncio
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from greensched_cli.explain.decisions import Context, InstallNamespace, Kubeconfig
from greensched_cli.output import AsOutput, Output, print_document
from greensched_cli.status.status import Namespace
from greensched_core.errors import BadInput

if TYPE_CHECKING:
    from greensched_cli.release.emergency_release import Place
    from greensched_cli.release.releasing import Result
    from greensched_core.kubernetes_api import ApiAccess


class EmergencyAction(StrEnum):
    """An action on the cluster's emergency release."""

    ON = "on"
    OFF = "off"
    STATUS = "status"


EmergencyOption = Annotated[
    EmergencyAction | None,
    typer.Option(
        help="For the whole cluster. on: start all held work and hold no more. off: allow holding "
        "again. status: print which one is set."
    ),
]


Names = Annotated[
    list[str] | None, typer.Argument(help="Work to start: NAME, job/NAME or pod/NAME.")
]
Everything = Annotated[bool, typer.Option("--all", help="Start all held work in the namespace.")]
AllNamespaces = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="Start all held work in all namespaces.")
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask before starting work in all namespaces.")
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Print what would be started and what would be refused; start nothing."
    ),
]


def release(
    names: Names = None,
    namespace: Namespace = None,
    everything: Everything = False,
    all_namespaces: AllNamespaces = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    emergency_release: EmergencyOption = None,
    install_namespace: InstallNamespace = None,
    output: AsOutput = Output.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Start held work now; it is never held again (greensched.io/run-now).

    It patches Jobs and pods itself, with your rights, so it works without a running operator. A
    gang starts together. Exits with 1 if something named could not be started.
    """
    is_all = everything or all_namespaces
    _check(names or [], is_all, emergency_release, dry_run)
    if namespace and all_namespaces:
        raise BadInput("-n names one namespace and -A means all: leave one of them out")
    from greensched_cli.reading.api_server import api_access, usual_namespace

    access = api_access(kubeconfig, context)
    if emergency_release is not None:
        _turn_or_show(access, emergency_release, install_namespace, output, is_sure=yes)
        return
    where = "" if all_namespaces else namespace or usual_namespace(kubeconfig, context)
    if all_namespaces and not dry_run:
        _confirm("Start all held work in all namespaces?", is_sure=yes)
    results = asyncio.run(_release(access, where, names or [], is_dry_run=dry_run))
    if output == Output.TABLE:
        _print(results, where)
    else:
        print_document([each.document() for each in results], output)
    if any(not each.is_sound for each in results):
        raise typer.Exit(1)


def _check(
    names: Sequence[str], is_all: bool, emergency_release: EmergencyAction | None, dry_run: bool
) -> None:
    asked = sum((bool(names), is_all, emergency_release is not None))
    if asked == 0:
        raise BadInput(
            "name what to start (NAME, job/NAME, pod/NAME), or --all, or --emergency-release"
        )
    if asked > 1:
        raise BadInput(
            "NAMES, --all (or -A) and --emergency-release exclude each other: give one of them"
        )
    if emergency_release is not None and dry_run:
        raise BadInput(
            "--emergency-release has no dry run; --emergency-release status prints its state"
        )


def _confirm(question: str, *, is_sure: bool) -> None:
    """Ask the user to confirm; raise BadInput if there is no terminal to ask on."""
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise BadInput(f"{question} There is no terminal to ask on: give --yes")
    typer.confirm(f"{question} It cannot be held again afterwards.", abort=True, err=True)


async def _release(
    access: "ApiAccess", namespace: str, names: Sequence[str], *, is_dry_run: bool
) -> "list[Result]":
    from greensched_cli.reading.api_server import PATIENCE_S
    from greensched_cli.reading.cluster_reading import read_held_works
    from greensched_cli.reading.named_work import parse_target
    from greensched_cli.release.releasing import UserReleaser
    from greensched_core.clock import WallClock
    from greensched_core.kubernetes_api import ApiClient

    targets = list(dict.fromkeys(parse_target(each) for each in names))
    async with ApiClient(access, timeout_s=PATIENCE_S) as client:
        releaser = UserReleaser(client, WallClock(), is_dry_run=is_dry_run)
        if targets:
            return await releaser.named(namespace, targets)
        works, unread = await read_held_works(client, namespace)
        for part, why in unread.items():
            print(f"{part} could not be searched: {why}", file=sys.stderr)
        return await releaser.all(works)


def _print(results: "Sequence[Result]", namespace: str) -> None:
    from greensched_cli.explain.explanation import printable
    from greensched_cli.release.releasing import ReleaseOutcome

    if not results:
        print(f"Nothing is held in {f'namespace {namespace}' if namespace else 'any namespace'}.")
    for each in results:
        line = f"{each.name}: {each.outcome}" + (f": {each.text}" if each.text else "")
        print(printable(line), file=sys.stdout if each.is_sound else sys.stderr)
    if len(results) > 1:
        counts = {
            outcome: sum(each.outcome == outcome for each in results) for outcome in ReleaseOutcome
        }
        print(", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count))


def _turn_or_show(
    access: "ApiAccess",
    emergency_release: EmergencyAction,
    install_namespace: str | None,
    output: Output,
    *,
    is_sure: bool,
) -> None:
    from greensched_cli.release.emergency_release import meaning, state_document

    if emergency_release == EmergencyAction.ON:
        _confirm("Start all held work in the cluster, and hold none?", is_sure=is_sure)
    place, is_on = asyncio.run(_turned(access, emergency_release, install_namespace))
    if output != Output.TABLE:
        print_document(state_document(place, is_turned_on=is_on), output)
        return
    for line in meaning(place, is_turned_on=is_on):
        print(line)


async def _turned(
    access: "ApiAccess", emergency_release: EmergencyAction, install_namespace: str | None
) -> "tuple[Place, bool]":
    from greensched_cli.reading.api_server import PATIENCE_S
    from greensched_cli.release.emergency_release import find_place, is_on, turn_off, turn_on
    from greensched_core.clock import WallClock
    from greensched_core.kubernetes_api import ApiClient

    async with ApiClient(access, timeout_s=PATIENCE_S) as client:
        place = await find_place(client, install_namespace)
        if emergency_release == EmergencyAction.ON:
            await turn_on(client, place, WallClock().now())
        elif emergency_release == EmergencyAction.OFF:
            await turn_off(client, place)
        return place, await is_on(client, place)
