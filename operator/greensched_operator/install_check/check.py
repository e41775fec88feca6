"""Tests an installation from inside the cluster and reports one line per check.

Everything it creates has a unique name and is deleted afterwards, also when a check fails.
"""

import asyncio
import secrets
import ssl
from collections.abc import Awaitable, Callable
from functools import partial

import httpx

from greensched_core.clock import Clock
from greensched_core.custom_resources.policy_lookup import DEFAULT_NAME, green_policies_in
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_operator.controller.default_policy import POLICY_REFUSED
from greensched_operator.install_check.checklist import (
    CheckFailed,
    CheckOutcome,
    Finding,
    NotAsked,
    Right,
    kubectl,
    rights,
)
from greensched_operator.install_check.settings import InstallCheckSettings
from greensched_operator.install_check.trial import Trial
from greensched_operator.objects.green_policy import fault_of, parse
from greensched_operator.runtime.settings import OperatorSettings

_POLICY_S = 15.0  # the leader creates it within seconds; Helm's timeout covers all checks together
_PAUSE_S = 0.5  # between two attempts
_AT_ONCE = 8  # requests
_MOST_NAMED = 5  # missing rights

Check = Callable[[], Awaitable[str]]


class InstallCheck:
    """Checks everything that users of an installation rely on."""

    def __init__(
        self,
        settings: InstallCheckSettings,
        operator: OperatorSettings,
        client: ApiClient,
        clock: Clock,
    ) -> None:
        """`operator` holds the settings of the operator's own processes."""
        self._settings = settings
        self._operator = operator
        self._kubectl = partial(kubectl, operator.namespace)
        self._client = client
        self._clock = clock
        name = f"check-{secrets.token_hex(4)}"
        self._trial = Trial(settings, operator, client, name)

    async def run(self, stop: asyncio.Event) -> list[Finding]:
        """Return the finding of each check; once `stop` is set, the remaining ones are skipped."""
        checks: dict[str, Check] = {
            "the extender answers at its Service": self._extender,
            "the service accounts have their rights": self._rights,
            "the cluster's GreenPolicy exists": self._policy,
            "the API server calls the webhook": self._trial.dry_run,
            "the scheduler places a pod": self._trial.place,
            "a Job is held, and released": self._trial.hold,
        }
        findings = []
        try:
            for title, check in checks.items():
                if stop.is_set():
                    findings.append(Finding(title, CheckOutcome.SKIPPED, "the check was stopped"))
                else:
                    findings.append(await self._one(title, check))
        finally:
            await self._trial.clean()
        return findings

    async def _one(self, title: str, check: Check) -> Finding:
        began_s = self._clock.monotonic()
        try:
            async with asyncio.timeout(2 * self._settings.limit_s):  # checks have their own limit
                seen = await check()
        except NotAsked as reason:
            return Finding(title, CheckOutcome.SKIPPED, str(reason))
        except CheckFailed as fault:
            return Finding(title, CheckOutcome.FAILED, fault.message, fault.advice)
        except ApiUnavailable as fault:
            advice = "ask the cluster's administrator whether the API server is healthy"
            return Finding(title, CheckOutcome.FAILED, str(fault), advice)
        except TimeoutError:
            advice = f"look at the pods: {self._kubectl('get pods')}"
            return Finding(title, CheckOutcome.FAILED, "no answer in time", advice)
        return Finding(
            title, CheckOutcome.PASSED, f"{seen} ({self._clock.monotonic() - began_s:.1f} s)"
        )

    async def _extender(self) -> str:
        url = self._settings.extender_url
        if not url:
            raise NotAsked("this release has none (scheduler.extenderUrl)")
        deadline_s = self._clock.monotonic() + self._settings.limit_s
        while True:
            fault = await self._ask_extender(url)
            if not fault:
                return url
            if self._clock.monotonic() > deadline_s:
                name = f"{self._settings.release}-extender"
                raise CheckFailed(
                    f"{url}/readyz: {fault}",
                    f"{self._kubectl(f'rollout status deployment/{name}')}; then"
                    f" {self._kubectl(f'get endpointslices -l kubernetes.io/service-name={name}')};"
                    " then the cluster's DNS and NetworkPolicies",
                )
            await asyncio.sleep(_PAUSE_S)

    async def _ask_extender(self, url: str) -> str:
        """Return why the extender does not answer, or "" if it does."""
        server_name = self._settings.extender_server_name
        name = {"sni_hostname": server_name} if server_name else {}
        try:
            async with httpx.AsyncClient(
                verify=self._trust(), timeout=5.0, trust_env=False
            ) as client:
                reply = await client.get(f"{url}/readyz", extensions=name)
        except (httpx.HTTPError, OSError) as fault:  # ssl.SSLError is an OSError
            return str(fault) or type(fault).__name__
        return "" if reply.status_code == 200 else f"HTTP {reply.status_code}: {reply.text[:200]}"

    def _trust(self) -> ssl.SSLContext | bool:
        settings = self._settings
        if settings.extender_ca_file is None:
            return False  # http: there is nothing to verify
        context = ssl.create_default_context(cafile=settings.extender_ca_file)
        if settings.extender_cert_file:
            context.load_cert_chain(settings.extender_cert_file, settings.extender_key_file)
        return context

    async def _policy(self) -> str:
        wanted, namespace = self._settings.policy_mode, self._operator.namespace
        if not wanted:
            raise NotAsked("this release creates none (policy.create is false)")
        path = f"{green_policies_in(namespace)}/{DEFAULT_NAME}"
        deadline_s = self._clock.monotonic() + min(self._settings.limit_s, _POLICY_S)
        while (found := await self._trial.found(path)) is None:
            if self._clock.monotonic() > deadline_s:
                raise CheckFailed(
                    f"there is no GreenPolicy {DEFAULT_NAME} in namespace {namespace}, so the"
                    " built-in policy applies (mode shadow: nothing is held)",
                    f"{self._kubectl(f'get events --field-selector reason={POLICY_REFUSED}')} shows"
                    " what the API server refuses in policy.spec; if there is no such event:"
                    f" {self._trial.look_at('controller')}",
                )
            await asyncio.sleep(_PAUSE_S)
        return mode_of(found, wanted)

    async def _rights(self) -> str:
        asked = rights(self._settings.rights)
        slots = asyncio.Semaphore(_AT_ONCE)

        async def is_missing(right: Right) -> bool:
            async with slots:
                return not await self._trial.may(right)

        async with asyncio.timeout(self._settings.limit_s):
            answers = await asyncio.gather(*(is_missing(each) for each in asked))
        missing = [str(each) for each, is_gone in zip(asked, answers, strict=True) if is_gone]
        if missing:
            more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
            raise CheckFailed(
                f"{len(missing)} of {len(asked)} are missing: "
                f"{'; '.join(missing[:_MOST_NAMED])}{more}",
                "run helm upgrade again; if they are still missing, another release may own the"
                f" ClusterRoles: kubectl get clusterroles,clusterrolebindings | grep "
                f"{self._settings.release}",
            )
        return f"all {len(asked)}"


def mode_of(policy: object, wanted: str) -> str:
    """Return a sentence on the mode of a GreenPolicy; raise CheckFailed if it cannot be read."""
    found = parse(policy)
    if fault := fault_of(found):
        raise CheckFailed(
            fault,
            f"correct it: kubectl -n {found.namespace} edit greenpolicy {found.name}",
        )
    same = found.mode == wanted
    return f"mode {found.mode}" + ("" if same else f"; the chart's values: {wanted}")
