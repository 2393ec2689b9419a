"""Where the shipped task sets and prompts lie: beside the package in a checkout, inside it in an installed wheel."""

from pathlib import Path

PACKAGE = Path(__file__).parent


def resource(name: str) -> Path:
    """The directory `name` ("datasets" or "prompts"). :raises FileNotFoundError: the installation is incomplete."""
    for candidate in (PACKAGE / "_data" / name, PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"codeenv's {name!r} directory is missing from this installation; reinstall the package")
