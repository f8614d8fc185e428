"""Families: what differs between architectures, one short description for each."""

from app.lm.families.reading import read_anatomy
from app.lm.families.table import FAMILIES

__all__ = ["FAMILIES", "read_anatomy"]
