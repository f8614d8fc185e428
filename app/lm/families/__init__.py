"""Families: what differs between architectures, one short description for each."""

from app.lm.families.reading import describe, read_anatomy, require_family
from app.lm.families.table import FAMILIES

__all__ = ["FAMILIES", "describe", "read_anatomy", "require_family"]
