#!/usr/bin/env python3
"""Writes pydantic.jsonl beside this file: a line {"name": …, "schema": …} for each construct of Pydantic 2, as it writes it.

To renew it, with Pydantic 2: python3 test/grammar/libraries/python.py > test/grammar/libraries/pydantic.jsonl
"""
import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import typing
import uuid
import pydantic
import typing_extensions
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from typing import Annotated, Any, Dict, List, Literal, Optional, Set, Tuple, Union


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Node(BaseModel):
    value: str
    children: List["Node"] = []


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Typed(typing_extensions.TypedDict, total=False):
    x: int
    y: typing_extensions.Required[str]


class Point(typing.NamedTuple):
    x: int
    y: float


TYPES = {
    "str": str, "int": int, "float": float, "bool": bool, "none": None, "any": Any, "bytes": bytes, "date": datetime.date,
    "datetime": datetime.datetime, "time": datetime.time, "timedelta": datetime.timedelta, "aware": pydantic.AwareDatetime,
    "past": pydantic.PastDate, "uuid": uuid.UUID, "uuid4": pydantic.UUID4, "path": pathlib.Path, "decimal": decimal.Decimal,
    "condecimal": Annotated[decimal.Decimal, Field(max_digits=6, decimal_places=2, ge=0)], "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address, "network": ipaddress.IPv4Network, "interface": ipaddress.IPv6Interface, "any url": pydantic.AnyUrl,
    "http url": pydantic.HttpUrl, "dsn": pydantic.PostgresDsn, "json": pydantic.Json[List[int]], "secret": pydantic.SecretStr,
    "base64": pydantic.Base64Str, "base64url": pydantic.Base64UrlBytes, "pattern type": typing.Pattern, "byte size": pydantic.ByteSize,
    "lengths": Annotated[str, StringConstraints(min_length=2, max_length=6)],
    "pattern": Annotated[str, StringConstraints(pattern=r"^[a-z]+\d*$")],
    "pattern and lengths": Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}", min_length=4, max_length=12)],
    "long pattern": Annotated[str, StringConstraints(pattern=r"^[\w .-]+$", max_length=2000)],
    "gt": Annotated[int, Field(gt=10)], "range": Annotated[float, Field(ge=-0.5, lt=0.5)], "multiple": Annotated[int, Field(multiple_of=15, ge=0)],
    "float multiple": Annotated[float, Field(multiple_of=0.5, ge=0, le=20)], "positive": pydantic.PositiveInt, "nonpositive": pydantic.NonPositiveFloat,
    "big": Annotated[int, Field(ge=-(2**70), le=2**80)], "bigger": Annotated[int, Field(gt=10**30)], "fine": Annotated[float, Field(gt=0.1234567890123456, lt=0.1234567890123499)],
    "tiny": Annotated[float, Field(gt=0, lt=1e-12)], "huge": Annotated[float, Field(ge=1e100)], "finite": pydantic.FiniteFloat, "strict int": pydantic.StrictInt,
    "list": List[int], "bounded list": Annotated[List[str], Field(min_length=1, max_length=3)], "set": Set[int], "frozenset": typing.FrozenSet[str],
    "tuple": Tuple[int, str], "tuple rest": Tuple[int, ...], "empty tuple": Tuple[()], "dict": Dict[str, int], "dict of enum": Dict[Colour, int],
    "dict of literal": Dict[Literal["a", "b"], str], "dict of pattern": Dict[Annotated[str, StringConstraints(pattern=r"^k\d+$")], int],
    "dict of lengths": Dict[Annotated[str, StringConstraints(min_length=2)], int], "bounded dict": Annotated[Dict[str, int], Field(min_length=1)],
    "dict of int": Dict[int, str], "optional": Optional[int], "union": Union[int, str, None], "literal": Literal["a", 1, True, None], "enum": Colour, "int enum": Level,
    "model": Cat, "discriminated": Annotated[Union[Cat, Dog], Field(discriminator="kind")], "models": Union[Cat, Dog], "recursive": Node,
    "closed": Closed, "open": Open, "typed dict": Typed, "named tuple": Point, "list of models": List[Union[Cat, Dog]],
    "described": Annotated[str, Field(title="T", description="d", examples=["x"], deprecated=True, json_schema_extra={"own": 1})],
    "default": Annotated[int, Field(default=3)], "email like": Annotated[str, Field(json_schema_extra={"format": "email"})],
    "complex": complex, "callable default": Annotated[List[int], Field(default_factory=list)], "json value": pydantic.JsonValue,
    "string of digits": Annotated[str, StringConstraints(strip_whitespace=True, to_upper=True)],
}

for name, kind in TYPES.items():
    written = set()
    for mode in ("validation", "serialization"):
        try:
            schema = json.dumps(pydantic.TypeAdapter(kind).json_schema(mode=mode))
            pair = pydantic.create_model("Pair", first=(kind, ...), second=(Optional[kind], None)).model_json_schema(mode=mode)
        except pydantic.errors.PydanticInvalidForJsonSchema:
            continue
        if schema in written:
            continue
        written.add(schema)
        print('{"name": "%s, %s", "schema": %s}' % (name, mode, schema))
        print(json.dumps({"name": f"object of {name}, {mode}", "schema": pair}))
