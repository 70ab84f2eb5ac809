"""Conversations for the table of template renders: each a dict of name, messages and what else a request may carry."""

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Current weather of a place.\nNever guess.",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "The city's name, e.g. \"Zürich\""},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "days": {"type": "integer", "minimum": 1}}, "required": ["city"]}}}
SEARCH = {"type": "function", "function": {
    "name": "search", "description": "Search <b>files</b> & more.",
    "parameters": {"type": "object", "properties": {
        "queries": {"type": "array", "items": {"type": "string"}},
        "filter": {"type": "object", "properties": {"since": {"type": ["string", "null"]}, "size": {"type": "number"}}},
        "deep": {"type": "boolean", "default": False}}, "required": ["queries"]}}}


def message(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments, call_id="call_00001"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


USER = message("user", "Hello, who are you?")
SYSTEM = message("system", "You are terse.\n")
ANSWER = message("assistant", "I am a test.  ")
AGAIN = message("user", "Ünïcode 🦊 'quotes' \"double\" <tag> & {{ braces }}\tend")
WEATHER_CALL = message("assistant", "", tool_calls=[call("get_weather", {"city": "Zürich", "days": 3})])
WEATHER_RESULT = message("tool", '{"temp": 21.5, "unit": "celsius"}', tool_call_id="call_00001", name="get_weather")

CONVERSATIONS = [
    dict(name="plain", messages=[USER]),
    dict(name="no_prompt", messages=[USER, ANSWER], add_generation_prompt=False),
    dict(name="system", messages=[SYSTEM, USER]),
    dict(name="turns", messages=[SYSTEM, USER, ANSWER, AGAIN]),
    dict(name="five_turns", messages=[USER, ANSWER, AGAIN, message("assistant", "ok"), USER]),
    dict(name="empty_content", messages=[message("system", ""), message("user", "")]),
    dict(name="tools", messages=[USER], tools=[WEATHER, SEARCH]),
    dict(name="system_tools", messages=[SYSTEM, USER], tools=[WEATHER]),
    dict(name="call", messages=[USER, WEATHER_CALL, WEATHER_RESULT], tools=[WEATHER, SEARCH]),
    dict(name="call_answered", messages=[SYSTEM, USER, WEATHER_CALL, WEATHER_RESULT, ANSWER, AGAIN], tools=[WEATHER]),
    dict(name="call_text", messages=[USER, message("assistant", "", tool_calls=[
        call("get_weather", '{"city": "Rome", "days": 1}')]), WEATHER_RESULT], tools=[WEATHER]),
    dict(name="call_null_content", messages=[USER, message("assistant", None, tool_calls=[
        call("search", {"queries": ["a", "b"], "filter": {"since": None, "size": 1.5}, "deep": True})]),
        message("tool", "nothing", tool_call_id="call_00001")], tools=[SEARCH]),
    dict(name="two_calls", messages=[USER, message("assistant", "Let me see.", tool_calls=[
        call("get_weather", {"city": "Bern"}, "callAAAA1"), call("search", {"queries": []}, "callAAAA2")]),
        message("tool", "cold", tool_call_id="callAAAA1", name="get_weather"),
        message("tool", "none", tool_call_id="callAAAA2", name="search")], tools=[WEATHER, SEARCH]),
    dict(name="parts", messages=[message("user", [{"type": "text", "text": "Look: "}, {"type": "text", "text": "here"}])]),
    dict(name="image", messages=[message("user", [
        {"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "data:,"}}, {"type": "image"}])]),
    dict(name="parts_everywhere", messages=[message(role, [{"type": "text", "text": role + " text"}])
                                            for role in ("system", "user", "assistant", "user")]),
    dict(name="reasoning", messages=[USER, message("assistant", "42", reasoning_content="Count\nslowly."), AGAIN]),
    dict(name="reasoning_last", messages=[USER, message("assistant", "42", reasoning_content="Count."), ],
         add_generation_prompt=False),
    dict(name="thinking_text", messages=[USER, message("assistant", "<think>\nhm\n</think>\n\nYes."), AGAIN]),
    dict(name="reasoning_call", messages=[USER, message("assistant", "", reasoning_content="I need the weather.", tool_calls=[
        call("get_weather", {"city": "Oslo"})]), WEATHER_RESULT], tools=[WEATHER]),
    dict(name="thinking_off", messages=[SYSTEM, USER], kwargs={"enable_thinking": False, "thinking": False}),
    dict(name="thinking_on", messages=[SYSTEM, USER], kwargs={"enable_thinking": True, "thinking": True}),
    dict(name="effort", messages=[USER], kwargs={"reasoning_effort": "high"}),
    dict(name="documents", messages=[USER], kwargs={"documents": [
        {"title": "One", "text": "First text."}, {"title": "Two", "text": "Second."}]}),
    dict(name="missing_content", messages=[USER, {"role": "assistant"}, USER]),
    dict(name="missing_role", messages=[{"content": "?"}]),
    dict(name="developer", messages=[message("developer", "Be kind."), USER]),
    dict(name="unknown_role", messages=[message("narrator", "Once"), USER]),
    dict(name="assistant_first", messages=[ANSWER, USER]),
    dict(name="no_messages", messages=[]),
    dict(name="number_content", messages=[message("user", 12.5)]),
    dict(name="dict_content", messages=[message("user", {"text": "odd"})]),
    dict(name="empty_tools", messages=[SYSTEM, USER], tools=[]),
    dict(name="json_edge", messages=[USER, message("assistant", "", tool_calls=[call("search", {
        "queries": ["\u2028 \x7f \x01 é \\ / </s>", ""], "n": [1e16, 1e-7, 0.1, -0.0, 5, True, None, {}], "": []})])],
        tools=[SEARCH]),
]
