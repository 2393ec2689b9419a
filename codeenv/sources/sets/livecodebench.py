"""LiveCodeBench's code generation: contest problems with their dates, of programs and of LeetCode's methods.

Both are judged as its own judge does: outputs line by line, blanks at the ends apart, where lines of numbers are
compared as exact decimals; returned values by `==`, a tuple as a list. Public and private tests count.
"""

from __future__ import annotations

import base64
import binascii
import pickletools
import zlib
from typing import Any, cast

from codeenv.sources.rows import Hub, PublicSet, Row, RowFault, identifier, text_of
from codeenv.sources.sets.cases import Problem, streams
from codeenv.sources.sets.columns import clean, mapping, optional, parsed
from codeenv.sources.sets.shapes import read_tests
from codeenv.task import Task

MOST_BYTES = 512 * 2**20
"""Of one row's private tests: what is packed can become a thousand times as large."""
HARMLESS = {"PROTO", "FRAME", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "STOP"}
STRINGS = {"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}


def to_task(row: Row) -> Task:
    question = text_of(row, "question_content")
    clean(question, "question_content")
    public = _cases(parsed(row.get("public_test_cases") or [], "public_test_cases"), "public_test_cases")
    private = private_cases(row.get("private_test_cases"))
    name = mapping(parsed(row.get("metadata") or {}, "metadata"), "metadata").get("func_name")
    tests = read_tests(public + private, "test cases", name=name)
    title = optional(row, "question_title").strip()
    problem = Problem(
        id=f"livecodebench/{identifier(text_of(row, 'question_id'))}",
        question=f"# {title}\n\n{question}" if title else question,
        starter=optional(row, "starter_code"),
        examples=streams([(case["input"], case["output"]) for case in public], "public_test_cases"),
        metadata={
            "difficulty": row.get("difficulty"),
            "date": str(row.get("contest_date") or "")[:10],
            "platform": row.get("platform"),
            "contest": row.get("contest_id"),
            "title": title,
        },
    )
    return tests.task(problem, "test cases")


def private_cases(value: Any) -> list[Any]:
    """The hidden tests: JSON, or its text pickled, compressed and as base64.

    :raises RowFault: it is neither, or larger than 512 MiB.
    """
    column = "private_test_cases"
    if value is None or value == "":
        raise RowFault(f"{column}: is empty")
    if not isinstance(value, str) or value.lstrip().startswith("["):
        return _cases(parsed(value, column), column)
    try:
        packed = zlib.decompressobj()
        data = packed.decompress(base64.b64decode(value, validate=True), MOST_BYTES)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise RowFault(f"{column}: neither JSON nor packed as LiveCodeBench packs them") from error
    if packed.unconsumed_tail:
        raise RowFault(f"{column}: more than {MOST_BYTES >> 20} MiB when unpacked")
    if not packed.eof:
        raise RowFault(f"{column}: is cut off")
    return _cases(parsed(pickled_text(data, column), column), column)


def pickled_text(data: bytes, column: str) -> str:
    """The text that this is a pickle of. Nothing is unpickled, which would run what a pickle says: it is read, and
    refused when it holds anything but one text."""
    found: list[str] = []
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in STRINGS:
                found.append(str(argument))
            elif opcode.name not in HARMLESS:
                raise RowFault(f"{column}: the pickle holds something other than text ({opcode.name})")
    except RowFault:
        raise
    except Exception as error:  # pickletools raises whatever the bytes lead it to
        raise RowFault(f"{column}: no pickle") from error
    if len(found) != 1:
        raise RowFault(f"{column}: the pickle holds {len(found)} texts, not one")
    return found[0]


def _cases(value: Any, column: str) -> list[Any]:
    if not isinstance(value, list):
        raise RowFault(f"{column}: must be a list of cases")
    return cast(list[Any], value)


SETS = (
    PublicSet(
        name="livecodebench",
        title="LiveCodeBench, code generation (lite)",
        licence="CC (its card names no version)",
        to_task=to_task,
        hub=Hub(
            "livecodebench/code_generation_lite", "0fe84c3912ea0c4d4a78037083943e8f0c4dd505", files=("test*.jsonl",)
        ),
        splits={"eval": "test"},
        field_limit_mb=256,  # of what is packed and in base64
    ),
)
