"""Writes kubeconfigs and service account folders, by which clients authenticate."""

import base64
import ssl
from pathlib import Path

import yaml

from greensched_core.kubernetes_api import ApiAccess
from greensched_testbed.certificates import KeyPair


def write_client_kubeconfig(path: Path, url: str, authority: Path, client: KeyPair) -> Path:
    """Write a self-contained kubeconfig for a client with a certificate."""
    user = {
        "client-certificate-data": _base64(client.certificate),
        "client-key-data": _base64(client.key),
    }
    return _write_kubeconfig(path, url, authority, user)


def write_token_kubeconfig(path: Path, url: str, authority: Path, token: str) -> Path:
    """Write a self-contained kubeconfig for a client with a bearer token."""
    return _write_kubeconfig(path, url, authority, {"token": token})


def write_service_account_dir(folder: Path, authority: Path, namespace: str, token: str) -> Path:
    """Write what kubelet mounts at /var/run/secrets/kubernetes.io/serviceaccount."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ca.crt").write_bytes(authority.read_bytes())
    (folder / "namespace").write_text(namespace)
    (folder / "token").touch(mode=0o600)
    (folder / "token").write_text(token)
    return folder


def certificate_access(url: str, authority: Path, client: KeyPair) -> ApiAccess:
    """Return the access of a client with a certificate."""
    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(client.certificate, client.key)
    return ApiAccess(url, context)


def _write_kubeconfig(path: Path, url: str, authority: Path, user: dict[str, str]) -> Path:
    name = "greensched-testbed"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {"server": url, "certificate-authority-data": _base64(authority)},
            }
        ],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
