"""Settings of a component: flags over environment over file over defaults, all faults at once."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    CliSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    YamlConfigSettingsSource,
)

from greensched_core.errors import BadInput


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
        """Order the sources; the file is named by <PREFIX>CONFIG_FILE."""
        file = os.environ.get(f"{cls.model_config.get('env_prefix', '')}CONFIG_FILE")
        sources = [init_settings, env_settings]
        if file:
            if not os.path.isfile(file):  # pydantic-settings would pass over it in silence
                raise SettingsError(f"file {file} does not exist")
            sources.append(YamlConfigSettingsSource(settings_cls, yaml_file=file))
        return tuple(sources)


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
    variable = f"{kind.model_config.get('env_prefix', '')}{name}".upper()
    given = f" (given {error['input']!r})" if "input" in error else ""
    return f"{name} or {variable}: {error['msg']}{given}"
