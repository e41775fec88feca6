"""Fields that several providers share, with the API server's checks."""

from typing import Annotated

from msgspec import Meta


def checked(
    rule: str,
    message: str,
    *,
    description: str | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
) -> Meta:
    """Return the checks of a text: `rule` is the API server's in CEL, `message` its error."""
    return Meta(
        description=description,
        min_length=min_length,
        max_length=max_length,
        extra_json_schema={"x-kubernetes-validations": [{"rule": rule, "message": message}]},
    )


Currency = Annotated[
    str,
    checked(
        "self.matches('^[A-Z]{3}$')",
        "currency must be three capital letters, such as EUR",
        description="Currency of the prices (ISO 4217); spec.currency by default.",
        max_length=10,
    ),
]
Multiply = Annotated[
    float,
    Meta(description="Factor from a value to grams per kWh, or to a price per MWh."),
]
SlotSeconds = Annotated[
    float,
    Meta(
        ge=60,
        le=86_400,
        description="Length of a slot; the shortest step between two starts by default.",
    ),
]
