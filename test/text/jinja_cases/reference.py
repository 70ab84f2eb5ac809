"""Renders chat templates with Jinja2, set up as Hugging Face transformers sets it up."""
import datetime
import json

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

BOS, EOS = "<s>", "</s>"


class Environment(ImmutableSandboxedEnvironment):
    """Published templates append to lists, which the immutable sandbox refuses and braid allows."""

    def is_safe_attribute(self, obj, attr, value):
        if isinstance(obj, list) and attr in ("append", "extend", "insert", "pop"):
            return True
        return super().is_safe_attribute(obj, attr, value)


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = Environment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.filters["safe"] = str  # Jinja's would HTML-escape whatever is added to it; chat templates never mean that
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return env


def render(source, case):
    """The text, or None where Jinja2 fails."""
    variables = {"documents": None, "bos_token": BOS, "eos_token": EOS, **case.get("kwargs", {})}
    variables.update(messages=json.loads(json.dumps(case["messages"])), tools=case.get("tools"),
                     add_generation_prompt=case.get("add_generation_prompt", True))
    try:
        return environment().from_string(source).render(**variables)
    except Exception as error:
        if "__" in str(error):
            raise
        return None
