"""Who vouches for a release: cosign, by a key or, in a forge's workflow, by the workflow itself."""

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

# A key vouches by itself: nothing is written into a public log, and nobody is asked for the time.
_NO_SERVICE = {
    "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
    "rekorTlogConfig": {},
    "tsaConfig": {},
}
_NO_LOG = "--insecure-ignore-tlog=true"


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs by a private key; without one by the identity that the workflow has (keyless)."""

    key: Path | None

    def sign(self, file: Path) -> Path:
        """Sign a file, and return where its signature lies, beside it."""
        bundle = signature_of(file)
        with self._arguments() as how:
            _sign("sign-blob", *how, "--bundle", bundle, file)
        return _readable(bundle)

    def attest(self, statement: Mapping[str, Any], bundle: Path) -> Path:
        """Sign an in-toto statement into `bundle`, as a DSSE envelope."""
        with self._arguments() as how, tempfile.TemporaryDirectory() as folder:
            told = Path(folder) / "statement.json"
            told.write_text(json.dumps(statement), encoding="utf-8")
            _sign("attest-blob", *how, "--statement", told, "--bundle", bundle)
        return _readable(bundle)

    def sign_image(self, reference: str) -> None:
        """Sign what a registry holds under its digest."""
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
    """Tells whether a signature is of the one who is trusted."""

    key: Path | None
    identity: str = ""  # of the workflow, a regular expression; for who signs without a key
    issuer: str = ""  # of that identity

    def require(self, file: Path) -> None:
        """Raise ReleaseFault unless the signature beside a file is of that very file."""
        run("cosign", "verify-blob", *self._whom(), "--bundle", signature_of(file), file)

    def require_attested(self, file: Path, bundle: Path) -> None:
        """Raise ReleaseFault unless the signed provenance names this very file."""
        # By its checksum: cosign reads no file of more than 128 MiB by itself.
        by = ("--digestAlg", "sha256", "--digest", sha256(file))
        what = ("--type", "slsaprovenance1", "--bundle", bundle, *by)
        run("cosign", "verify-blob-attestation", *self._whom(), *what)

    def require_image(self, reference: str) -> None:
        """Raise ReleaseFault unless what a registry holds is signed."""
        run("cosign", "verify", *self._whom(), *_plain(reference), reference)

    def _whom(self) -> tuple[str | Path, ...]:
        if self.key is not None:
            return ("--key", self.key, _NO_LOG)
        if not self.identity or not self.issuer:
            raise ReleaseFault("give the public key (KEY=…), or identity and issuer of who signed")
        return (
            *("--certificate-identity-regexp", self.identity),
            *("--certificate-oidc-issuer", self.issuer),
        )


def signature_of(file: Path) -> Path:
    """Return where the signature of a file lies."""
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
    # Or cosign would ask a terminal for the password of a key that has none.
    password = {"COSIGN_PASSWORD": os.environ.get("COSIGN_PASSWORD", "")}
    verb, *rest = arguments
    run("cosign", verb, "--yes", *rest, environment=password)


def _readable(bundle: Path) -> Path:
    os.chmod(bundle, 0o644)  # cosign writes for its owner alone; it is to be published
    return bundle


def _plain(reference: str) -> tuple[str, ...]:
    """Allow plain HTTP to a registry on this machine, and nowhere else."""
    is_here = reference.startswith(("127.0.0.1:", "localhost:"))
    return ("--allow-http-registry",) if is_here else ()
