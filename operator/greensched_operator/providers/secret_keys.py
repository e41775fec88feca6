"""Names of keys in Secrets of the operator's own namespace; never what they hold."""

from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class SecretKey:
    """One key of one Secret."""

    secret: str
    key: str


class TokenRef(msgspec.Struct, frozen=True):
    """Where an API key stands."""

    name: str
    key: str = "token"

    def secret_key(self) -> SecretKey:
        """Return the key."""
        return SecretKey(self.name, self.key)


class LoginRef(msgspec.Struct, frozen=True, rename="camel"):
    """Where a user and a password stand, in one Secret."""

    name: str
    username_key: str = "username"
    password_key: str = "password"

    def secret_keys(self) -> tuple[SecretKey, SecretKey]:
        """Return user and password, in this order."""
        return SecretKey(self.name, self.username_key), SecretKey(self.name, self.password_key)
