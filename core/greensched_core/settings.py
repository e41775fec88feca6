"""Settings of a component: flags, then environment, file, defaults; reports all faults at once."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_origin

import yaml
from pydantic import BeforeValidator, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    CliSettingsSource,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from greensched_core.errors import BadInput


def _none_if_empty(value: object) -> object:
    return None if value == "" else value


# A chart can leave a variable empty, but not absent.
OptionalPath = Annotated[Path | None, BeforeValidator(_none_if_empty)]
Port = Annotated[int, Field(ge=0, le=65_535)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]
CURRENCY = "^[A-Z]{3}$"


class ComponentSettings(BaseSettings):
    """The base of each component's settings; a subclass sets `env_prefix` in its model_config."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", cli_kebab_case=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources; <PREFIX>CONFIG_FILE names the file."""
        file = os.environ.get(f"{cls.model_config.get('env_prefix', '')}CONFIG_FILE")
        sources = [init_settings, _Environment(settings_cls)]
        if file:
            sources.append(InitSettingsSource(settings_cls, _read_file(Path(file))))
        return tuple(sources)


class _Environment(EnvSettingsSource):
    """Variables; invalid JSON stays text, so that it is reported with all other faults."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """Return a list or map from JSON; a list may also be comma-separated."""
        text = str(value).strip()
        if get_origin(field.annotation) is list and not text.startswith("["):
            return [part.strip() for part in text.split(",") if part.strip()]
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return value


def _read_file(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise SettingsError(f"file {file} does not exist")
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as fault:
        raise SettingsError(f"file {file} is not YAML: {fault}") from fault
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise SettingsError(f"file {file} must hold names with values, such as `log_level: info`")
    return content


_HOW_TO_WRITE = {
    "list_type": '; write a,b or ["a", "b"]',
    "dict_type": '; write JSON such as {"a": "b"}',
}

Settings = TypeVar("Settings", bound=ComponentSettings)


def load_settings(kind: type[Settings], arguments: Sequence[str] | None = None) -> Settings:
    """Read a component's settings; raise BadInput that lists every fault.

    `arguments` are command line flags such as `--listen-port=8888`; None leaves them out.
    """
    try:
        flags: dict[str, Any] = {}
        if arguments is not None:
            source = CliSettingsSource[Any](kind, cli_parse_args=list(arguments))
            flags = source()
        return kind(**flags)
    except ValidationError as fault:
        lines = [_sentence(kind, dict(error)) for error in fault.errors(include_url=False)]
        raise BadInput("settings: " + "; ".join(lines)) from fault
    except (SettingsError, OSError, yaml.YAMLError) as fault:
        raise BadInput(f"settings: {fault}") from fault


def unknown_variables(kind: type[ComponentSettings], environment: Mapping[str, str]) -> list[str]:
    """Return the variables with the component's prefix that name no setting, sorted."""
    prefix = str(kind.model_config.get("env_prefix", ""))
    known = {f"{prefix}{name}".upper() for name in kind.model_fields} | {f"{prefix}CONFIG_FILE"}
    return sorted(
        name for name in environment if name.startswith(prefix) and name.upper() not in known
    )


def _sentence(kind: type[ComponentSettings], error: dict[str, Any]) -> str:
    name = ".".join(str(part) for part in error["loc"])
    if not name:  # a fault of several settings: the input would be all of them, with secrets
        return str(error["msg"]).removeprefix("Value error, ")
    variable = f"{kind.model_config.get('env_prefix', '')}{name}".upper()
    given = f" (given {error['input']!r})" if "input" in error else ""
    how = _HOW_TO_WRITE.get(str(error["type"]), "") if isinstance(error.get("input"), str) else ""
    return f"{name} or {variable}: {error['msg']}{given}{how}"
