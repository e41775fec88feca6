"""Signs and verifies releases with cosign, by a key or by a forge's workflow (keyless)."""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.release.checksums import sha256
from deploy.release.faults import ReleaseFault
from deploy.release.programs import run

# A key needs no services: no public log is written, and no timestamp authority is asked.
_NO_SERVICE = {
    "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
    "rekorTlogConfig": {},
    "tsaConfig": {},
}
_NO_LOG = "--insecure-ignore-tlog=true"


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs by a private key, or without one by the workflow's identity (keyless)."""

    key: Path | None

    def sign(self, file: Path) -> Path:
        """Sign a file, and return the path of its signature, in the same folder."""
        bundle = signature_of(file)
        with self._arguments() as how:
            _sign("sign-blob", *how, "--bundle", bundle, file)
        return _readable(bundle)

    def attest(self, statement: Mapping[str, Any], bundle: Path) -> Path:
        """Sign an in-toto statement into `bundle`, as a DSSE envelope."""
        with self._arguments() as how, tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "statement.json"
            file.write_text(json.dumps(statement), encoding="utf-8")
            _sign("attest-blob", *how, "--statement", file, "--bundle", bundle)
        return _readable(bundle)

    def sign_image(self, reference: str) -> None:
        """Sign an image or chart in a registry, by its digest."""
        with self._arguments() as how:
            _sign("sign", *how, *_plain(reference), reference)

    @contextmanager
    def _arguments(self) -> Iterator[tuple[str | Path, ...]]:
        if self.key is None:
            yield ()
            return
        with tempfile.TemporaryDirectory() as folder:
            services = Path(folder) / "services.json"
            services.write_text(json.dumps(_NO_SERVICE), encoding="utf-8")
            yield ("--key", self.key, "--signing-config", services)


@dataclass(frozen=True, slots=True)
class Verifier:
    """Checks that signatures are those of the trusted signer."""

    key: Path | None
    identity: str = ""  # of the workflow, a regular expression; for keyless signatures
    issuer: str = ""  # of that identity

    def require(self, file: Path) -> None:
        """Raise ReleaseFault unless a file's signature matches it."""
        run("cosign", "verify-blob", *self._signer_options(), "--bundle", signature_of(file), file)

    def require_attested(self, file: Path, bundle: Path) -> None:
        """Raise ReleaseFault unless the signed provenance names exactly this file."""
        # By checksum, because cosign reads no file of more than 128 MiB.
        by = ("--digestAlg", "sha256", "--digest", sha256(file))
        what = ("--type", "slsaprovenance1", "--bundle", bundle, *by)
        run("cosign", "verify-blob-attestation", *self._signer_options(), *what)

    def require_image(self, reference: str) -> None:
        """Raise ReleaseFault unless an image or chart in a registry is signed."""
        run("cosign", "verify", *self._signer_options(), *_plain(reference), reference)

    def _signer_options(self) -> tuple[str | Path, ...]:
        if self.key is not None:
            return ("--key", self.key, _NO_LOG)
        if not self.identity or not self.issuer:
            raise ReleaseFault("give the public key (KEY=…), or the signer's identity and issuer")
        return (
            *("--certificate-identity-regexp", self.identity),
            *("--certificate-oidc-issuer", self.issuer),
        )


def signature_of(file: Path) -> Path:
    """Return the path of a file's signature."""
    return file.with_name(f"{file.name}.sigstore.json")


def make_key(folder: Path) -> Path:
    """Make a key pair without a password, for a rehearsal, and return the private key's path."""
    folder.mkdir(parents=True, exist_ok=True)
    key = folder / "cosign.key"
    if not key.exists():
        prefix = f"--output-key-prefix={key.with_suffix('')}"
        run("cosign", "generate-key-pair", prefix, environment={"COSIGN_PASSWORD": ""})
    return key


def _sign(*arguments: str | Path) -> None:
    # Otherwise cosign would ask a terminal for the password of a key that has none.
    password = {"COSIGN_PASSWORD": os.environ.get("COSIGN_PASSWORD", "")}
    verb, *rest = arguments
    run("cosign", verb, "--yes", *rest, environment=password)


def _readable(bundle: Path) -> Path:
    os.chmod(bundle, 0o644)  # cosign makes it readable only by its owner, but it will be published
    return bundle


def _plain(reference: str) -> tuple[str, ...]:
    """Allow plain HTTP to a registry on this machine, and nowhere else."""
    is_here = reference.startswith(("127.0.0.1:", "localhost:"))
    return ("--allow-http-registry",) if is_here else ()
