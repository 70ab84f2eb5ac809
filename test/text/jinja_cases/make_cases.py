#!/usr/bin/env python3
"""Writes cases.json: templates, conversations and what Jinja2 3.1 makes of them.

    make_cases.py                    the committed table
    make_cases.py OUT TEMPLATE...    a table of other templates, for BRAID_JINJA_CASES
"""
import json
import pathlib
import sys

from conversations import CONVERSATIONS
from reference import render
from snippets import VARIABLES, snippets

HERE = pathlib.Path(__file__).parent


def case(template, source, conversation):
    return {**conversation, "template": template, "expected": render(source, conversation)}


def table(paths, with_snippets):
    templates = {path.stem: path.read_text() for path in paths}
    cases = [case(name, source, dict(conversation)) for name, source in templates.items() for conversation in CONVERSATIONS]
    if with_snippets:
        for number, source in enumerate(snippets()):
            name = f"snippet {number}"
            templates[name] = source
            cases.append(case(name, source, {"name": "snippet", "messages": [], "kwargs": VARIABLES}))
    return {"bos_token": "<s>", "eos_token": "</s>", "templates": templates, "cases": cases}


def main():
    if len(sys.argv) > 1:
        out, paths = pathlib.Path(sys.argv[1]), [pathlib.Path(path) for path in sys.argv[2:]]
    else:
        out, paths = HERE / "cases.json", sorted((HERE / "templates").glob("*.jinja"))
    result = table(paths, len(sys.argv) == 1)
    out.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n")
    failing = sum(entry["expected"] is None for entry in result["cases"])
    print(f"{len(result['cases'])} cases, {failing} of them errors")


if __name__ == "__main__":
    main()
