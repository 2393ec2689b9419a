"""What boxes are made from: stubs (what was asked for) and images (what is in them before anything runs)."""

from __future__ import annotations

import hashlib
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from codeenv.sandbox.archive import Archive


@dataclass(frozen=True)
class Stub:
    """What boxes of one kind are to be."""

    id: str
    request: Any
    """The GetOrCreateStub message."""
    keep_warm: int
    """Seconds that a box lives; below 0 for ever; 0: until somebody looks."""
    env: dict[str, str]


@dataclass(frozen=True)
class Image:
    """What a box starts with: directories by their path, variables, Python packages."""

    id: str
    content: dict[str, Archive] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()


class Store:
    """All stubs, images, volumes and uploaded objects of one workspace."""

    def __init__(self, secrets: dict[str, str]) -> None:
        self.secrets = secrets
        self.stubs: dict[str, Stub] = {}
        self.images: dict[str, Image] = {}
        self.objects: dict[str, str] = {}
        """Ids of objects by the hash of their content."""
        self.volumes: dict[str, str] = {}
        """Ids of volumes by name."""

    def stub(self, request: Any) -> Stub:
        """The stub of a request: a new one, or where the request allows it an equal one that is there.

        :raises LookupError: there is no secret of such a name.
        """
        for secret in request.secrets:
            if secret.name not in self.secrets:
                raise LookupError(f'Secret "{secret.name}" does not exist in this workspace.')
        if not request.force_create:
            for stub in self.stubs.values():
                if stub.request == request:
                    return stub
        env = dict(pair.split("=", 1) for pair in request.env if "=" in pair)
        env |= {secret.name: self.secrets[secret.name] for secret in request.secrets}
        keep_warm = int(request.keep_warm_seconds)
        made = Stub(str(uuid.uuid4()), request, 10 if 0 < keep_warm < 10 else keep_warm, env)
        self.stubs[made.id] = made
        return made

    def image_id(self, request: Message) -> str:
        """The id of what a request describes, or names: the same for equal descriptions."""
        fields = {field.name: value for field, value in request.ListFields()}
        if fields.get("image_id"):
            return fields["image_id"]
        for name in ("image_id", "force_rebuild", "existing_image_creds"):  # no part of what it describes
            fields.pop(name, None)
        text = repr([(name, _plain(fields[name])) for name in sorted(fields)])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def built(self, image_id: str, request: Any) -> Image:
        pairs = dict(pair.split("=", 1) for pair in request.env_vars if "=" in pair)
        packages = [*request.python_packages, *(step.command for step in request.build_steps if step.type == "pip")]
        self.images[image_id] = Image(image_id, env=pairs, packages=tuple(packages))
        return self.images[image_id]

    def snapshot(
        self, stub_id: str, content: dict[str, Archive], env: dict[str, str], packages: tuple[str, ...]
    ) -> Image:
        """An image of what a box holds. Two of one stub in one second have one id, and the later is what stays."""
        image = Image(f"{stub_id}-{int(time.time())}", content, env, packages)
        self.images[image.id] = image
        return image

    def volume(self, name: str) -> str:
        return self.volumes.setdefault(name, str(uuid.uuid4()))

    def uploaded(self, content_hash: str) -> str:
        return self.objects.setdefault(content_hash, str(uuid.uuid4()))


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return value.SerializeToString(deterministic=True)
    return value if isinstance(value, (str, bytes, int, float)) else [_plain(each) for each in value]
