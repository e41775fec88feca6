"""Starts one of the operator's processes.

emergency-release and check-install end by themselves, the others on SIGTERM or SIGINT.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence

import structlog
import uvloop
from prometheus_client import disable_created_metrics

from greensched_core.errors import BadInput, TaskEnded
from greensched_core.kubernetes_api import ApiClient
from greensched_core.logs import set_up_logs
from greensched_core.open_files import raise_file_limit
from greensched_core.settings import load_settings, unknown_variables
from greensched_operator.runtime.processes import stop_on_signals
from greensched_operator.runtime.settings import OperatorSettings

log = structlog.get_logger()

RunProcess = Callable[
    [OperatorSettings, ApiClient, asyncio.Event], Awaitable[int | None]
]  # exit status


async def _controller(settings: OperatorSettings, client: ApiClient, stop: asyncio.Event) -> None:
    from greensched_operator.controller.controller_process import ControllerProcess
    from greensched_policies.library.loading import load

    load()
    access = settings.api_access()
    await ControllerProcess(settings, access, client, settings.clock).run(stop)


async def _webhook(settings: OperatorSettings, client: ApiClient, stop: asyncio.Event) -> None:
    from greensched_operator.webhook.webhook import WebhookProcess

    await WebhookProcess(settings, client, settings.clock).run(stop)


async def _releaser(settings: OperatorSettings, client: ApiClient, stop: asyncio.Event) -> None:
    from greensched_operator.release.releaser import Releaser

    await Releaser(settings, client, settings.clock).run(stop)


async def _emergency_release(
    settings: OperatorSettings, client: ApiClient, stop: asyncio.Event
) -> int:
    from greensched_operator.release.emergency_release import EmergencyRelease

    outcome = await EmergencyRelease(settings, client, settings.clock).run(stop)
    print(f"greensched: {outcome.text}")
    return 0 if outcome.is_done else 1


async def _check_install(settings: OperatorSettings, client: ApiClient, stop: asyncio.Event) -> int:
    from greensched_operator.install_check.check import InstallCheck
    from greensched_operator.install_check.checklist import CheckOutcome, checklist
    from greensched_operator.install_check.settings import InstallCheckSettings

    check_settings = load_settings(InstallCheckSettings)
    findings = await InstallCheck(check_settings, settings, client, settings.clock).run(stop)
    print(checklist(findings), flush=True)
    return int(stop.is_set() or any(each.state == CheckOutcome.FAILED for each in findings))


# Each process imports its own modules, so that a releaser does not load numpy or a model.
PROCESSES: dict[str, RunProcess] = {
    "controller": _controller,
    "webhook": _webhook,
    "releaser": _releaser,
    "emergency-release": _emergency_release,
    "check-install": _check_install,
}


async def serve_process(name: str, settings: OperatorSettings) -> int:
    """Run a process until it ends or gets SIGTERM or SIGINT, and return its exit status.

    Raises BadInput if it cannot start.
    """
    stop = stop_on_signals()
    async with ApiClient(settings.api_access()) as client:
        return await PROCESSES[name](settings, client, stop) or 0


def main(arguments: Sequence[str]) -> int:
    """Run the process that the first argument names, and return its exit status.

    The status is 2 for a wrong setting, and 1 if a task of the process ended unexpectedly.
    """
    name, *flags = arguments or ("",)
    if name not in PROCESSES:
        print(
            f"greensched_operator: give the process to run: {', '.join(PROCESSES)}", file=sys.stderr
        )
        return 2
    try:
        settings = load_settings(OperatorSettings, flags)
        set_up_logs(f"operator-{name}", settings.log_level)
        raise_file_limit()
        disable_created_metrics()  # type: ignore[no-untyped-call]  # half of all lines, and unused
        for variable in unknown_variables(OperatorSettings, os.environ):
            log.warning("unknown setting in the environment, ignored", variable=variable)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(serve_process(name, settings))
    except BadInput as fault:
        print(f"greensched_operator: {fault}", file=sys.stderr)
        return 2
    except TaskEnded as fault:
        log.error("a task ended, so the process ends", reason=str(fault))
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
