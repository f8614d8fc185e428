"""Templates and what all of them can use."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app import __version__
from app.web.arrays import exact
from app.web.assets import Assets


class Pages:
    """Renders the templates of a folder. Everything is escaped; a name that a template misspells is an error."""

    def __init__(self, folder: Path, assets: Assets, plotly_url: str) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(folder),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals |= {"asset": assets.url, "plotly_url": plotly_url, "version": __version__}

    def render(self, template: str, **context: Any) -> str:
        """The page."""
        return self._environment.get_template(template).render(context)

    def render_data(self, template: str, **context: Any) -> str:
        """A page that embeds plain data; numbers that JSON does not have are spelt out, as in the API."""
        return self.render(template, **exact(context))
