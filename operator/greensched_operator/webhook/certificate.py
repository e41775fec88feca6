"""The webhook's certificate: created, stored in a Secret, and renewed long before it expires."""

import base64
import ipaddress
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from greensched_core.errors import BadInput

LIFETIME = timedelta(days=365)
RENEWED_BEFORE = timedelta(days=120)  # still valid in a cluster that was off for months
_CLOCK_SKEW = timedelta(minutes=5)
# A replica's watch shows a new pair immediately, and the replica serves it 5 s later; if its watch
# died silently, within 3 minutes. The clocks of creator and checker may differ by 5 minutes.
SPREADS_WITHIN = timedelta(minutes=10)
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
CERT, KEY = "tls.crt", "tls.key"  # keys of a Secret of type kubernetes.io/tls


@dataclass(frozen=True, slots=True)
class Pair:
    """A self-signed certificate and its private key, PEM."""

    cert: bytes
    key: bytes


class _SecretMeta(msgspec.Struct):
    resourceVersion: str = ""


class SecretObject(msgspec.Struct):
    """A Secret in the API server's format; data is base64."""

    metadata: _SecretMeta = msgspec.field(default_factory=_SecretMeta)
    data: dict[str, str] | None = None


_decode_secret = msgspec.json.Decoder(SecretObject).decode


def new_pair(hosts: Sequence[str], now_s: float) -> Pair:
    """Return a self-signed pair for a server with `hosts`: DNS names and IP addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "greensched-webhook")])
    now = datetime.fromtimestamp(now_s, UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_name(each) for each in hosts]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def serves(pair: Pair, hosts: Sequence[str], now_s: float) -> bool:
    """Return whether a pair is for these hosts and not yet due for renewal."""
    try:
        found = x509.load_pem_x509_certificate(pair.cert)
        key = serialization.load_pem_private_key(pair.key, None)
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, x509.ExtensionNotFound):
        return False
    now = datetime.fromtimestamp(now_s, UTC)
    return (
        key.public_key() == found.public_key()
        and found.not_valid_before_utc <= now < found.not_valid_after_utc - RENEWED_BEFORE
        and set(names) == {_name(each) for each in hosts}
    )


def has_spread(pair: Pair, now_s: float) -> bool:
    """Return whether every replica serves a pair of `new_pair` and none an older one."""
    made = x509.load_pem_x509_certificate(pair.cert).not_valid_before_utc + _CLOCK_SKEW
    return made + SPREADS_WITHIN <= datetime.fromtimestamp(now_s, UTC)


def certificates_in(bundle: bytes) -> tuple[bytes, ...]:
    """Return the certificates of a bundle, as normalised PEM; invalid ones are left out."""
    return tuple(_certificates_in(bundle))


def _certificates_in(bundle: bytes) -> Iterator[bytes]:
    for pem in _PEM.findall(bundle):
        with suppress(ValueError):
            found = x509.load_pem_x509_certificate(pem)
            yield found.public_bytes(serialization.Encoding.PEM)


def secret_body(name: str, namespace: str, pair: Pair) -> bytes:
    """Return the Secret of a pair, as JSON."""
    data = {CERT: base64.b64encode(pair.cert).decode(), KEY: base64.b64encode(pair.key).decode()}
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace},
            "type": "kubernetes.io/tls",
            "data": data,
        }
    )


def read_secret(raw: bytes | msgspec.Raw) -> Pair | None:
    """Return the pair in a Secret, None if it has none; raises BadInput for an invalid Secret."""
    try:
        data = _decode_secret(raw).data or {}
        cert, key = (base64.b64decode(data[name], validate=True) for name in (CERT, KEY))
    except KeyError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as fault:
        raise BadInput(f"not a Secret with a certificate: {fault}") from fault
    return Pair(cert, key)


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
