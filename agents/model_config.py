"""The configuration of models: the endpoint, how it is called, what each agent has of its own, prices."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

if TYPE_CHECKING:
    from kernel_scientist.knowledge import EndpointSettings

__all__ = [
    "AgentModel",
    "Effort",
    "EmbeddingConfig",
    "ModelsConfig",
    "Price",
    "StructuredOutput",
    "Table",
    "is_endpoint",
]

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
"""How much a reasoning model is to think; which of them it takes is the model's."""

StructuredOutput = Literal["auto", "schema", "prompt"]
"""How an answer's form is asked for: by a JSON schema, by the prompt, or by schema until one is refused."""

_CONFIDENTIAL = re.compile(r"(?<=//)[^'\"]*(?=@)|(?<=\?)[^'\"]+")


class Table(BaseModel):
    """What the tables of the configuration have in common: no unknown key, no infinite number, and no
    truth value where a number is meant."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_truth_value(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, bool) or info.field_name is None:
            return value
        annotation = cls.model_fields[info.field_name].annotation
        kinds = {annotation, *get_args(annotation)}
        if bool not in kinds and kinds & {int, float}:
            raise PydanticCustomError("int_type" if int in kinds else "float_type", "a number is meant")
        return value


class Price(Table):
    """US dollars for a million tokens; `cached` is for input that the service had read before."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    source: str = ""
    date: str = ""


def _checked_address(value: str | None) -> str | None:
    address = value if value is None else value.strip()
    if address is not None and not is_endpoint(address):
        raise ValueError("must be an address such as http://localhost:8000/v1")
    return address


def without_secrets(text: str) -> str:
    """`text` without what addresses in it may hold: a name and password, or a key in a query."""
    return _CONFIDENTIAL.sub("[hidden]", text)


def is_endpoint(url: str) -> bool:
    """Whether `url` can be that of an endpoint: http or https, a host, and no query, as paths follow it."""
    # The parser passes over line ends, which the client that calls does not.
    if not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        whole = bool(parts.hostname) and parts.port != 0 and not (parts.query or parts.fragment)
        return parts.scheme in ("http", "https") and whole
    except ValueError:
        return False


class AgentModel(Table):
    """What one agent has of its own; ``None`` is as for all. A bare name is its `model`."""

    model: str | None = None
    base_url: str | None = None
    api_key: SecretStr | None = Field(default=None, exclude=True)
    api_key_env: str | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    reasoning_effort: Effort | None = None
    max_output_tokens: int | None = Field(default=None, ge=16)
    context_tokens: int | None = Field(default=None, ge=2_000)
    stream: bool | None = None
    function_calling: bool | None = None
    structured_output: StructuredOutput | None = None
    timeout_s: float | None = Field(default=None, gt=0)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: object) -> object:
        return {"model": value} if isinstance(value, str) else value

    @field_validator("base_url")
    @classmethod
    def _is_web_address(cls, value: str | None) -> str | None:
        return _checked_address(value)


class ModelsConfig(Table):
    """The endpoint and how it is called. `selector` and the others override it for one agent (`for_agent`).

    The key is read from the variable named by `api_key_env`; `api_key` in a file works too and is
    never written into a run. `context_tokens` is what the model can read, prompt and answer together
    (``None``: what the price table says, else 64,000).
    """

    base_url: str | None = None
    api_key: SecretStr | None = Field(default=None, exclude=True)
    api_key_env: str = "OPENAI_API_KEY"
    selector: AgentModel = AgentModel()
    researcher: AgentModel = AgentModel()
    coder: AgentModel = AgentModel()
    benchmarker: AgentModel = AgentModel()
    temperature: float | None = Field(default=None, ge=0, le=2)
    reasoning_effort: Effort | None = None
    max_output_tokens: int | None = Field(default=None, ge=16)
    stream: bool = False
    function_calling: bool = True
    structured_output: StructuredOutput = "auto"
    timeout_s: float = Field(default=300.0, gt=0)
    tries: int = Field(default=8, ge=1, le=100)
    retry_wait_s: float = Field(default=1.0, ge=0)
    longest_wait_s: float = Field(default=3600.0, ge=0)
    context_tokens: int | None = Field(default=None, ge=2_000)
    prices_file: Path | None = None
    prices: dict[str, Price] = {}

    @field_validator("base_url")
    @classmethod
    def _is_web_address(cls, value: str | None) -> str | None:
        return _checked_address(value)

    @field_validator("prices_file")
    @classmethod
    def _is_a_whole_path(cls, value: Path | None) -> Path | None:
        """A run may be gone on with from elsewhere."""
        return None if value is None else value.absolute()

    def for_agent(self, agent: str) -> ModelsConfig:
        """The settings as they hold for one agent."""
        own: AgentModel = getattr(self, agent)
        changes = {name: getattr(own, name) for name in AgentModel.model_fields if name != "model"}
        return self.model_copy(update={name: one for name, one in changes.items() if one is not None})


class EmbeddingConfig(Table):
    """How an embeddings endpoint is called: the variable with its key, texts in a request, and patience."""

    api_key_env: str = Field(default="OPENAI_API_KEY", min_length=1)
    batch: int = Field(default=64, ge=1, le=4_096)
    tries: int = Field(default=6, ge=1, le=100)
    retry_wait_s: float = Field(default=1.0, ge=0)
    timeout_s: float = Field(default=120.0, gt=0)

    def settings(self) -> EndpointSettings:
        """The same for the knowledge base."""
        from kernel_scientist.knowledge import EndpointSettings

        return EndpointSettings(self.api_key_env, self.batch, self.tries, self.retry_wait_s, self.timeout_s)
