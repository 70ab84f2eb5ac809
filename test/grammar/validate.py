#!/usr/bin/env python3
"""Reads lines {"schema": …, "text": …}; prints those whose text is not JSON that satisfies the schema, and a count of the rest.

A line may name keywords of its schema that do not count: {"left_out": ["schema.properties.a.not", …]}.

The judge is the distribution's python3-jsonschema, which shares no code with what it judges.
"""
import datetime
import json
import re
import sys
import urllib.parse

import jsonschema

# What the module checks only with further packages.
KEPT = {"date", "uuid", "email", "ipv4", "ipv6", "json-pointer", "duration"}
formats = jsonschema.FormatChecker([name for name in jsonschema.FormatChecker().checkers if name in KEPT])
# Numbers and null have no format.
def check(name, judge):
    formats.checks(name, raises=ValueError)(lambda value: not isinstance(value, str) or judge(value))


check("date-time", datetime.datetime.fromisoformat)
check("time", datetime.time.fromisoformat)
check("hostname", lambda text: len(text) < 254 and all(re.fullmatch(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)", part) for part in text.split(".")))
check("uri", lambda text: urllib.parse.urlsplit(text).scheme and urllib.parse.urlsplit(text).port != 0)


def draft_of(schema):
    """The draft that it names, or that its words are of."""
    text = json.dumps(schema)
    if '"items": [' in text:
        return jsonschema.Draft7Validator
    if re.search(r'"exclusiveM[a-z]+": (true|false)', text):
        return jsonschema.Draft4Validator
    if not isinstance(schema, dict):
        return jsonschema.Draft202012Validator
    return jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)


def remove(node, path):
    """Removes the keyword at the path, whose steps are names behind dots and indexes in brackets."""
    for key in sorted(node if isinstance(node, dict) else [], key=len, reverse=True):
        step = "." + key
        if path == step:
            del node[key]
            return True
        if path.startswith(step) and path[len(step)] in ".[" and remove(node[key], path[len(step):]):
            return True
    index = re.match(r"\[(\d+)\]", path)
    if index and isinstance(node, list):
        if index.end() == len(path):
            return False
        return remove(node[int(index.group(1))], path[index.end():])
    return False


# Without what does not bind, a format beside a pattern or lengths, and patterns in JavaScript's words that Python cannot read.
def without_annotations(node):
    if isinstance(node, dict):
        if "format" in node and not {"pattern", "minLength", "maxLength", "allOf", "$ref"}.isdisjoint(node):
            node = {name: value for name, value in node.items() if name != "format"}
        if isinstance(node.get("pattern"), str) and "\\p{" in node["pattern"]:
            node = {name: value for name, value in node.items() if name != "pattern"}
        if isinstance(node.get("type"), list):  # one library names a type twice, which jsonschema refuses from 4.18 on
            node = node | {"type": list(dict.fromkeys(node["type"]))}
        return {name: without_annotations(value) for name, value in node.items()}
    return [without_annotations(item) for item in node] if isinstance(node, list) else node


validators = {}
sound = 0
for line in open(sys.argv[1], encoding="utf-8"):
    case = json.loads(line)
    key = json.dumps([case["schema"], case.get("left_out", [])])
    if key not in validators:
        schema = json.loads(json.dumps(case["schema"]))
        for path in case.get("left_out", []):
            shortened = re.sub(r"(\.oneOf)\[\d+\]$", r"\1", path)
            if not remove(schema, shortened[len("schema"):]):
                print(f"{key}\n  there is no {path}")
        schema = without_annotations(schema)
        draft = draft_of(schema)
        draft.check_schema(schema)
        validators[key] = draft(schema, format_checker=formats)
    try:
        validators[key].validate(json.loads(case["text"], parse_constant=lambda name: 1 / 0))
        sound += 1
    except Exception as failure:  # whatever went wrong, the text is not what was promised
        reason = str(failure).split("\n", 1)[0]
        print(f"{key}\n  {case['text']!r}\n  {type(failure).__name__}: {reason}")
print(f"{sound} sound")
