"""Names of keys in Secrets of the operator's own namespace, never their values."""

from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from greensched_operator.providers.fields import checked

SecretName = Annotated[
    str,
    checked(
        "self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",
        "the name of a Secret holds lower case letters, digits, '-' and '.'",
        min_length=1,
        max_length=253,
    ),
]
KeyName = Annotated[str, Meta(min_length=1, max_length=253)]


@dataclass(frozen=True, slots=True)
class SecretKey:
    """One key of one Secret."""

    secret: str
    key: str


class TokenRef(msgspec.Struct, frozen=True):
    """A key of a Secret of type greensched.io/provider in the operator's namespace."""

    name: SecretName
    key: KeyName = "token"

    def secret_key(self) -> SecretKey:
        """Return the key."""
        return SecretKey(self.name, self.key)


class LoginRef(msgspec.Struct, frozen=True, rename="camel"):
    """A Secret of type greensched.io/provider in the operator's namespace."""

    name: SecretName
    username_key: KeyName = "username"
    password_key: KeyName = "password"

    def secret_keys(self) -> tuple[SecretKey, SecretKey]:
        """Return the keys of user and password, in this order."""
        return SecretKey(self.name, self.username_key), SecretKey(self.name, self.password_key)
