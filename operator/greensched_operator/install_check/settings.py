"""The settings of `check-install`, which the chart writes."""

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from greensched_core.settings import ComponentSettings, OptionalPath, Positive
from greensched_operator.install_check.checklist import Grant


class InstallCheckSettings(ComponentSettings):
    """What an installation should contain; checks whose setting is empty are skipped."""

    model_config = SettingsConfigDict(env_prefix="GREENSCHED_CHECK_")

    release: str = Field(
        default="greensched", description="Prefix of the names of the release's objects."
    )
    namespace: str = Field(
        default="greensched-check",
        description="Namespace for the check's own Jobs and pods, with a GreenPolicy of mode "
        "enforce.",
    )
    image: str = Field(
        default="localhost/greensched-operator", description="Image of these Jobs and pods."
    )
    extender_url: str = Field(
        default="",
        description="Address of the extender's Service; empty: this release has no extender.",
    )
    extender_ca_file: OptionalPath = Field(
        default=None, description="CA of the extender's certificate; empty: it serves http."
    )
    extender_server_name: str = Field(
        default="",
        description="Name in the extender's certificate; empty: the Service's name.",
    )
    extender_cert_file: OptionalPath = Field(
        default=None,
        description="Client certificate for the extender; empty: it requires none.",
    )
    extender_key_file: OptionalPath = Field(
        default=None, description="Key of the client certificate."
    )
    scheduler_name: str = Field(
        default="",
        description="schedulerName of the trial pod; empty: this release has no scheduler.",
    )
    can_hold: bool = Field(
        default=True, description="Whether this release has a webhook that holds work."
    )
    policy_mode: str = Field(
        default="",
        description="Mode of the release's GreenPolicy; empty: the release creates none.",
    )
    rights: list[Grant] = Field(
        default=[], description="Rights that each account of the release should have, as JSON."
    )
    limit_s: Positive = Field(default=45.0, description="Seconds that one check may take.")
