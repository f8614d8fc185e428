"""docs/glossary.md as terms for the page.

The file holds `## Term` headings; under each, paragraphs of plain text with `code` in backticks, and formulas as lines
indented by four spaces.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Term:
    """One word and what it means, the latter as safe HTML."""

    term: str
    definition: Markup


def read_glossary(path: Path) -> tuple[Term, ...]:
    """The terms of a glossary file, in its order."""
    sections = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return tuple(_term(section) for section in sections)


def _term(section: str) -> Term:
    heading, _, body = section.partition("\n")
    blocks = [block for block in re.split(r"\n\s*\n", body.strip("\n")) if block.strip()]
    return Term(heading.strip(), Markup("").join(_block(block) for block in blocks))


def _block(block: str) -> Markup:
    lines = block.split("\n")
    if all(line.startswith("    ") for line in lines):
        return Markup("<pre>{}</pre>").format("\n".join(line[4:] for line in lines))
    parts = _CODE.split(" ".join(line.strip() for line in lines))
    # Every second part is what stood between backticks.
    marked = [Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in enumerate(parts)]
    return Markup("<p>{}</p>").format(Markup("").join(marked))
