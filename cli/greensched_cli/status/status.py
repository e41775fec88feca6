"""`greensched status`: what is held, until when and why, and the operator's state."""

import asyncio
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from greensched_cli.explain.decisions import Context, InstallNamespace, Kubeconfig
from greensched_cli.output import AsOutput, Output, print_document
from greensched_core.errors import ApiUnavailable, BadInput

if TYPE_CHECKING:
    from greensched_cli.status.answer import Question

_LOOKS_EVERY_S = 5.0
_REFUSED = (401, 403)  # asking again does not help


Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace of the work; by default the context's."),
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Show all namespaces.")]


def status(
    name: Annotated[
        str | None,
        typer.Argument(help="Show one Job or pod in full: NAME, job/NAME or pod/NAME."),
    ] = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    released: Annotated[
        bool, typer.Option("--released", help="Also show work started lately, and why.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Refresh every 5 seconds until Ctrl-C.")
    ] = False,
    output: AsOutput = Output.TABLE,
    install_namespace: InstallNamespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show what waits for cleaner or cheaper power, when it starts, and what is wrong.

    It needs the right to list Jobs and pods of a namespace, and prints what else it may not read.
    Exits with 1 if the API server does not answer, or if there is no work of that NAME.
    """
    if name and (all_namespaces or released):
        raise BadInput("a NAME is one workload: leave -A and --released out, or the NAME")
    if namespace and all_namespaces:
        raise BadInput("-n names one namespace and -A means all: leave one of them out")
    from greensched_cli.reading.api_server import api_access, usual_namespace
    from greensched_cli.status.answer import Question

    access = api_access(kubeconfig, context)
    where = "" if all_namespaces else namespace or usual_namespace(kubeconfig, context)
    question = Question(access, where, name, released, install_namespace)
    if watch:
        _keep_looking(question, output)
    elif not _answer(question, output):
        raise typer.Exit(1)


def _keep_looking(question: "Question", output: Output) -> None:
    never = threading.Event()
    try:
        while True:
            if sys.stdout.isatty():
                print("\x1b[2J\x1b[H", end="")
            try:
                _answer(question, output)
            except ApiUnavailable as fault:  # the API server may be restarting
                if fault.status in _REFUSED:
                    raise
                print(f"greensched: {fault}", file=sys.stderr)
            print(flush=True)
            never.wait(_LOOKS_EVERY_S)
    except KeyboardInterrupt:
        pass  # Ctrl-C ends the watch


def _answer(question: "Question", output: Output) -> bool:
    """Print one answer; return False if there is no such work."""
    from greensched_cli.reading.local_times import LocalTimes
    from greensched_cli.status.answer import ask_one, status_content
    from greensched_cli.status.json_output import as_json
    from greensched_cli.status.text import print_status
    from greensched_cli.terminal import plain_console
    from greensched_core.clock import WallClock

    times = LocalTimes(WallClock().now())
    if question.name is not None:
        found = asyncio.run(ask_one(question, question.name, times))
        if output == Output.TABLE:
            print(found.text)
        else:
            print_document(found.documents, output)
        return bool(found.documents)
    content = asyncio.run(status_content(question, times.now_s))
    if output == Output.TABLE:
        print_status(plain_console(), content, times)
    else:
        print_document(as_json(content, times.now_s), output)
    return True
