"""The API server of a kubeconfig, and the credentials of its user."""

import base64
import ssl
import tempfile
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from greensched_core.clock import WallClock
from greensched_core.errors import BadInput
from greensched_core.kubeconfig.files import Context, KubeconfigEntry, read_context
from greensched_core.kubeconfig.plugins import LoginPlugin

_LEGACY = "auth-provider"  # logins that only the official client supports, such as oidc
_PAIR = ("client-certificate", "client-key")
Token = Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class Login:
    """The address of an API server, and a user's credentials."""

    server: str
    verify: ssl.SSLContext
    token: Token  # called before each request; raises BadInput if a login plugin fails
    token_file: Path | None  # used instead of `token`; its content is replaced now and then
    proxy: str | None  # URL of the HTTP proxy to the server


def read_login(kubeconfig: Path | None, context: str | None) -> Login:
    """Return the login of a context, or of the current one; raise BadInput if it is not usable.

    Reads the files of `kubeconfig`, else those of KUBECONFIG, else ~/.kube/config.
    """
    chosen = read_context(kubeconfig, context)
    user, server = chosen.user, chosen.cluster.text("server").rstrip("/")
    token, plugin = _token(chosen)
    try:
        verify = _verification(chosen.cluster)
        _load_certificate(verify, user, plugin.credential().certificate if plugin else None)
        return Login(server, verify, token, user.path("tokenFile"), _proxy(chosen.cluster, server))
    except (OSError, ValueError) as fault:  # from TLS, base64 and URLs
        reason = " ".join(str(fault).split()) or type(fault).__name__
        raise BadInput(f"kubeconfig {chosen.source}: {reason}") from fault


def _token(chosen: Context) -> tuple[Token, LoginPlugin | None]:
    user = chosen.user
    if _LEGACY in user.fields:
        return _by_official_client(chosen), None
    if text := user.text("token"):
        return (lambda: text), None
    if "exec" in user.fields and not user.text("tokenFile"):
        plugin = LoginPlugin(chosen, WallClock())
        return plugin.token, plugin
    if user.text("username"):
        raise BadInput(
            f"kubeconfig {chosen.source}: its user has a name and a password, which Kubernetes "
            "no longer accepts since 1.19: use a token, a certificate, or a login plugin"
        )
    return (lambda: None), None


def _by_official_client(chosen: Context) -> Token:
    """Return the token function of an auth-provider login; the package renews the token."""
    try:
        from kubernetes import client, config  # 117 MB, so imported only if needed
    except ModuleNotFoundError as fault:
        raise BadInput(
            f"kubeconfig {chosen.source}: its user logs in by an {_LEGACY}, which needs the "
            "extra `oidc`"
        ) from fault
    configuration = client.Configuration()
    try:
        config.load_kube_config(  # type: ignore[no-untyped-call]  # the package has no types
            config_file=chosen.source, context=chosen.name, client_configuration=configuration
        )
    except Exception as fault:  # the package has many types of kubeconfig errors
        reason = " ".join(str(fault).split()) or type(fault).__name__
        raise BadInput(f"kubeconfig {chosen.source}: {_LEGACY}: {reason}") from fault

    def token() -> str | None:
        # The name since version 37 of the package, and the earlier one.
        header = configuration.get_api_key_with_prefix("BearerToken", "authorization")
        return str(header).removeprefix("Bearer ") if header else None

    if token() is None:
        named = dict(chosen.user.fields[_LEGACY] or {}).get("name", "")
        raise BadInput(
            f"kubeconfig {chosen.source}: {_LEGACY} {named} gives no token: log in again"
        )
    return token


def _verification(cluster: KubeconfigEntry) -> ssl.SSLContext:
    """Return the TLS context that verifies the server by the cluster's, else the system's, CA."""
    data, file = _data(cluster, "certificate-authority"), cluster.path("certificate-authority")
    if data:
        file = None
    elif file is not None and not file.is_file():
        raise ValueError(f"certificate-authority {file} does not exist")
    if name := cluster.text("tls-server-name"):
        verify: ssl.SSLContext = _OneName(ssl.PROTOCOL_TLS_CLIENT, name)
        if data or file:
            verify.load_verify_locations(file, cadata=data)
        else:
            verify.load_default_certs()
    else:
        verify = ssl.create_default_context(cafile=file, cadata=data)
    if cluster.fields.get("insecure-skip-tls-verify"):
        verify.check_hostname = False
        verify.verify_mode = ssl.CERT_NONE
    return verify


class _OneName(ssl.SSLContext):
    """Requests and verifies one server name, whatever the host's name is."""

    def __init__(self, protocol: int, name: str) -> None:
        self._name = name

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Return a TLS object for the name; asyncio and anyio call this."""
        return super().wrap_bio(incoming, outgoing, server_side, self._name, session)


def _load_certificate(
    verify: ssl.SSLContext, user: KubeconfigEntry, printed: tuple[str, str] | None
) -> None:
    """Load the user's certificate, if any: the plugin's, else the kubeconfig's."""
    texts = printed or (_data(user, _PAIR[0]), _data(user, _PAIR[1]))
    if not texts[0] and user.path(_PAIR[0]) is None:
        return
    with tempfile.TemporaryDirectory(prefix="greensched-") as folder:  # ssl reads only files
        files = []
        for key, text in zip(_PAIR, texts, strict=True):
            file = user.path(key)
            if text:
                file = Path(folder) / key
                file.write_text(text, encoding="utf-8")
            if file is None:
                raise ValueError(f"it has no {key}")
            if not file.is_file():
                raise ValueError(f"{key} {file} does not exist")
            files.append(file)
        verify.load_cert_chain(files[0], files[1])


def _data(entry: KubeconfigEntry, key: str) -> str | None:
    """Return the PEM text embedded in a kubeconfig entry."""
    data = entry.text(f"{key}-data")
    return base64.b64decode(data).decode("utf-8") if data else None


def _proxy(cluster: KubeconfigEntry, server: str) -> str | None:
    """Return the cluster's proxy, else the environment's, as kubectl does."""
    url = cluster.text("proxy-url")
    if not url:
        proxies = urllib.request.getproxies_environment()
        host = urlsplit(server).hostname or ""
        if _is_loopback(host) or urllib.request.proxy_bypass(host):
            return None
        url = proxies.get(urlsplit(server).scheme, "")
    if url and urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"proxy {url}: only http:// and https:// are supported")
    return url or None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
