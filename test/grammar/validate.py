#!/usr/bin/env python3
"""Reads lines {"schema": …, "text": …}; prints those whose text is not JSON that satisfies the schema, and a count of the rest.

The judge is the distribution's python3-jsonschema, which shares no code with what it judges.
"""
import datetime
import json
import re
import sys
import urllib.parse

import jsonschema

# What the module checks only with further packages.
formats = jsonschema.FormatChecker()
formats.checks("date-time", raises=ValueError)(datetime.datetime.fromisoformat)
formats.checks("time", raises=ValueError)(datetime.time.fromisoformat)
formats.checks("hostname")(lambda text: len(text) < 254 and all(re.fullmatch(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)", part) for part in text.split(".")))
formats.checks("uri", raises=ValueError)(lambda text: urllib.parse.urlsplit(text).scheme and urllib.parse.urlsplit(text).port != 0)

validators = {}
sound = 0
for line in open(sys.argv[1], encoding="utf-8"):
    case = json.loads(line)
    key = json.dumps(case["schema"])
    if key not in validators:
        jsonschema.Draft202012Validator.check_schema(case["schema"])
        validators[key] = jsonschema.Draft202012Validator(case["schema"], format_checker=formats)
    try:
        validators[key].validate(json.loads(case["text"], parse_constant=lambda name: 1 / 0))
        sound += 1
    except Exception as failure:  # whatever went wrong, the text is not what was promised
        reason = str(failure).split("\n", 1)[0]
        print(f"{key}\n  {case['text']!r}\n  {type(failure).__name__}: {reason}")
print(f"{sound} sound")
