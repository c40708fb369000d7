"""A server on this machine that speaks the part of the Hub's API that we use."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

LFS_SIZE = 4096
"""Larger files are uploaded by themselves, as the Hub wants it for binary files."""


@dataclass
class Hub:
    """Repositories in memory.

    Attributes:
        url: of the server.
        commits: by repository and commit: the files by name.
        branches: by repository and name, the commit.
        private: the repositories that need the token `secret`.
        requests: methods and paths with the `Range` and the token of each request.
        cut_after: number of bytes after which the next file download is cut off; None for never.
    """

    url: str = ""
    commits: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    branches: dict[str, dict[str, str]] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)
    requests: list[tuple[str, str, str | None, str | None]] = field(default_factory=list)
    uploads: dict[str, bytes] = field(default_factory=dict)
    cut_after: int | None = None

    def commit(self, repository: str, files: dict[str, bytes], branch: str = "main") -> str:
        """Replace the files of a branch; return the commit."""
        content = json.dumps({name: _sha(data) for name, data in files.items()}).encode()
        commit = hashlib.sha1(content).hexdigest()
        self.commits.setdefault(repository, {})[commit] = files
        self.branches.setdefault(repository, {})[branch] = commit
        return commit


@contextmanager
def serving() -> Iterator[Hub]:
    """Serve a hub until the end of the block."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._get(has_body=False)

    def do_GET(self) -> None:
        self._get(has_body=True)

    def do_POST(self) -> None:
        path, body = self._path(), self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if path == "/api/repos/create":
            repository = (
                f"{json.loads(body).get('organization') or 'me'}/{json.loads(body)['name']}"
            )
            if repository not in self.hub.branches:
                self.hub.commit(repository, {})
            return self._json({"url": f"{self.hub.url}/{repository}"})
        if path == "/api/validate-yaml":  # of a model card
            return self._json({"errors": [], "warnings": []})
        if path.endswith("/info/lfs/objects/batch"):
            objects = [
                {**each, "actions": {"upload": {"href": f"{self.hub.url}/lfs/{each['oid']}"}}}
                for each in json.loads(body)["objects"]
            ]
            return self._json({"transfer": "basic", "objects": objects})
        repository = "/".join(path.split("/")[3:5])
        if "/preupload/" in path:
            files = [
                {
                    "path": each["path"],
                    "uploadMode": "lfs" if each["size"] > LFS_SIZE else "regular",
                    "shouldIgnore": False,
                    "oid": None,
                }
                for each in json.loads(body)["files"]
            ]
            return self._json({"files": files})
        assert "/commit/" in path, path
        return self._commit(repository, path.rpartition("/")[2], body)

    def do_PUT(self) -> None:
        oid = self._path().rpartition("/")[2]
        self.hub.uploads[oid] = self.rfile.read(int(self.headers["Content-Length"]))
        assert _sha(self.hub.uploads[oid]) == oid
        self._send(200, b"")

    def _commit(self, repository: str, branch: str, body: bytes) -> None:
        files = dict(self.hub.commits[repository][self.hub.branches[repository][branch]])
        for line in filter(None, body.splitlines()):
            entry = json.loads(line)
            if entry["key"] == "file":
                files[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
            elif entry["key"] == "lfsFile":
                files[entry["value"]["path"]] = self.hub.uploads[entry["value"]["oid"]]
        commit = self.hub.commit(repository, files, branch)
        return self._json(
            {
                "commitUrl": f"{self.hub.url}/{repository}/commit/{commit}",
                "commitOid": commit,
                "success": True,
            }
        )

    def _path(self) -> str:
        path = unquote(urlsplit(self.path).path)
        token = self.headers.get("Authorization")
        self.hub.requests.append((self.command, path, self.headers.get("Range"), token))
        return path

    def _get(self, *, has_body: bool) -> None:
        path = self._path()
        parts = path.strip("/").split("/")
        is_api = parts[0] == "api"
        repository = "/".join(parts[2:4] if is_api else parts[:2])
        is_hidden = (
            repository in self.hub.private and self.headers.get("Authorization") != "Bearer secret"
        )
        if repository not in self.hub.branches or is_hidden:
            return self._send(401 if is_hidden else 404, b"", {"X-Error-Code": "RepoNotFound"})
        revision = parts[5] if is_api and len(parts) > 5 else "main" if is_api else parts[3]
        commit = self.hub.branches[repository].get(revision, revision)
        files = self.hub.commits[repository].get(commit)
        if files is None:
            return self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
        if is_api and "tree" in parts:
            entries = [
                {"type": "file", "path": name, "size": len(data), "oid": _sha(data)[:40]}
                for name, data in files.items()
            ]
            return self._json(entries)
        if is_api:
            siblings = [{"rfilename": name} for name in files]
            return self._json(
                {
                    "id": repository,
                    "sha": commit,
                    "siblings": siblings,
                    "private": False,
                    "tags": [],
                    "downloads": 0,
                    "likes": 0,
                }
            )
        name = "/".join(parts[4:])
        if name not in files:
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
        return self._file(files[name], commit, has_body=has_body)

    def _file(self, data: bytes, commit: str, *, has_body: bool) -> None:
        headers = {"ETag": f'"{_sha(data)}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        start, status = 0, 200
        if (asked := self.headers.get("Range")) is not None:
            start, status = int(asked.removeprefix("bytes=").partition("-")[0]), 206
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        self._send(status, data[start:], headers, has_body=has_body)

    def _json(self, content: Any) -> None:
        self._send(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def _send(
        self,
        status: int,
        content: bytes,
        headers: dict[str, str] | None = None,
        *,
        has_body: bool = True,
    ) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if not has_body:
            return
        cut = self.hub.cut_after
        if cut is not None and len(content) > cut and "ETag" in (headers or {}):
            self.hub.cut_after = None
            self.wfile.write(content[:cut])
            self.close_connection = True
            return
        self.wfile.write(content)


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
