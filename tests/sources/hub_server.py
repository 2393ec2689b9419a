"""A server on loopback that speaks as much of the Hugging Face hub's API as loading a data set takes: repositories of
small files, each at one commit. It counts what it is asked for."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

Repositories = Mapping[str, Mapping[str, bytes]]
"""By name (`owner/name`): path -> content."""


def commit_of(files: Mapping[str, bytes]) -> str:
    return hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()


class HubServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, repositories: Repositories) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories = dict(repositories)
        self.requests: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.answer()

    def do_HEAD(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def answer(self) -> None:
        asked = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append(f"{self.command} {asked.path}")
        parts = unquote(asked.path).strip("/").split("/")
        api = parts[0] == "api"
        name = "/".join(parts[2:4] if api else parts[1:3])
        files = self.server.repositories.get(name)
        if "datasets" not in parts[:2] or files is None:
            self.refuse("RepoNotFound")
            return
        rest = parts[4:] if api else parts[3:]
        commit = commit_of(files)
        if len(rest) > 1 and rest[1] not in ("main", commit):
            self.refuse("RevisionNotFound")
        elif api and (not rest or rest[0] == "revision"):
            siblings = [{"rfilename": path} for path in sorted(files)]
            self.send({"id": name, "sha": commit, "siblings": siblings, "private": False, "tags": []})
        elif api and rest[0] == "tree":
            self.send(self.tree(files, "/".join(rest[2:]), recursive="recursive=true" in asked.query.lower()))
        elif api and rest[0] == "paths-info":
            wanted = parse_qs(body.decode()).get("paths") or json.loads(body or b"{}").get("paths") or []
            self.send([entry for entry in self.tree(files, "", recursive=True) if entry["path"] in wanted])
        elif not api and rest[0] == "resolve":
            path = "/".join(rest[2:])
            if path in files:
                self.send_file(files[path], commit)
            else:
                self.refuse("EntryNotFound", commit)
        else:
            self.refuse("EntryNotFound", commit)

    @staticmethod
    def tree(files: Mapping[str, bytes], folder: str, *, recursive: bool) -> list[dict[str, object]]:
        found: dict[str, dict[str, object]] = {}
        for path, data in sorted(files.items()):
            if folder and not path.startswith(f"{folder}/"):
                continue
            inner = path[len(folder) + 1 :] if folder else path
            names = inner.split("/")
            for depth in range(1, len(names)):
                parent = "/".join([*([folder] if folder else []), *names[:depth]])
                if recursive or depth == 1:
                    found[parent] = {"type": "directory", "oid": "0" * 40, "size": 0, "path": parent}
            if recursive or len(names) == 1:
                oid = hashlib.sha1(data).hexdigest()
                found[path] = {"type": "file", "oid": oid, "size": len(data), "path": path}
        return list(found.values())

    def send(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.head(200, {"Content-Type": "application/json", "Content-Length": str(len(data))})
        if self.command != "HEAD":
            self.wfile.write(data)

    def send_file(self, data: bytes, commit: str) -> None:
        etag = hashlib.sha1(data).hexdigest()
        self.head(200, {"Content-Length": str(len(data)), "ETag": f'"{etag}"', "X-Repo-Commit": commit})
        if self.command != "HEAD":
            self.wfile.write(data)

    def refuse(self, code: str, commit: str = "") -> None:
        headers = {"Content-Length": "0", "X-Error-Code": code, "X-Error-Message": code}
        self.head(404, headers | ({"X-Repo-Commit": commit} if commit else {}))

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


@contextmanager
def serve_hub(repositories: Repositories) -> Iterator[HubServer]:
    server = HubServer(repositories)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
