"""What `check-install` is told by the chart."""

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from greensched_core.settings import ComponentSettings, OptionalPath, Positive
from greensched_operator.install_check.checklist import Grant


class InstallCheckSettings(ComponentSettings):
    """What is to be there after an installation; what is empty is not asked."""

    model_config = SettingsConfigDict(env_prefix="GREENSCHED_CHECK_")

    release: str = Field(
        default="greensched", description="Prefix of the names of the release's objects."
    )
    namespace: str = Field(
        default="greensched-check",
        description="Namespace for the check's own Jobs and pods; a GreenPolicy enforces in it.",
    )
    image: str = Field(
        default="localhost/greensched-operator", description="Image of these Jobs and pods."
    )
    extender_url: str = Field(
        default="", description="Address of the extender's Service; empty: it runs elsewhere."
    )
    extender_ca_file: OptionalPath = Field(
        default=None, description="Authority of its certificate; empty: it answers http."
    )
    extender_server_name: str = Field(
        default="", description="Name in its certificate, where that is not the Service's."
    )
    extender_cert_file: OptionalPath = Field(
        default=None, description="Certificate to show it; empty: it asks for none."
    )
    extender_key_file: OptionalPath = Field(default=None, description="Key of that certificate.")
    scheduler_name: str = Field(
        default="", description="schedulerName of the pod that is placed; empty: it runs elsewhere."
    )
    can_hold: bool = Field(
        default=True, description="Whether this release has a webhook that holds work."
    )
    policy_mode: str = Field(
        default="", description="Mode of the release's GreenPolicy; empty: it has none."
    )
    rights: list[Grant] = Field(
        default=[], description="What each account of the release is to be allowed, as JSON."
    )
    limit_s: Positive = Field(default=45.0, description="Seconds that one check may take.")
