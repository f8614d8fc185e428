"""The hash of a model's files."""

import hashlib
from collections.abc import Iterable
from pathlib import Path


def hash_files(folder: Path, patterns: Iterable[str]) -> str:
    """SHA-256 of the names and contents of all files in a folder that match a pattern; 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in folder.glob(pattern)}):
        digest.update(path.name.encode() + b"\0")
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
