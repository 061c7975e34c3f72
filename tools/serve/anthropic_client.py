"""Anthropic's interface through Anthropic's own library."""

import json
import typing

import anthropic
import jsonschema
import pydantic
from openai_client import HELLO, MODEL, SCHEMA, refused

TOOL = {"name": "paint", "description": "paints", "input_schema": SCHEMA}


def client(server):
    return anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=120)


def messages(server):
    answer = client(server).messages.create(model=MODEL, max_tokens=20, messages=HELLO, extra_body={"temperature": 0},
                                            system="Be brief.", stop_sequences=["\n\n"])
    assert answer.type == "message" and answer.role == "assistant" and answer.usage.input_tokens > 0
    assert answer.stop_reason in ("max_tokens", "stop_sequence", "end_turn"), answer.stop_reason
    return repr("".join(block.text for block in answer.content if block.type == "text"))


def stream(server):
    asked = dict(model=MODEL, max_tokens=30, messages=HELLO, extra_body={"temperature": 0})
    whole = client(server).messages.create(**asked)
    with client(server).messages.stream(**asked) as events:
        text = "".join(events.text_stream)
        final = events.get_final_message()
    assert text == "".join(block.text for block in whole.content if block.type == "text")
    assert final.stop_reason == whole.stop_reason and final.usage.output_tokens == whole.usage.output_tokens
    return f"{final.usage.output_tokens} tokens"


def tools(server):
    ai = client(server)
    asked = dict(model=MODEL, max_tokens=200, messages=HELLO, tools=[TOOL], extra_body={"temperature": 1},
                 tool_choice={"type": "tool", "name": "paint"})
    answer = ai.messages.create(**asked)
    call = answer.content[-1]
    assert answer.stop_reason == "tool_use" and call.type == "tool_use" and call.name == "paint", answer
    jsonschema.validate(call.input, SCHEMA)
    with ai.messages.stream(**asked) as events:
        streamed = events.get_final_message().content[-1]
    jsonschema.validate(streamed.input, SCHEMA)
    history = HELLO + [{"role": "assistant", "content": [block.model_dump() for block in answer.content]},
                       {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "done"}]}]
    assert ai.messages.create(model=MODEL, max_tokens=5, messages=history, tools=[TOOL]).content is not None
    return str(call.input)


class Painting(pydantic.BaseModel):
    colour: typing.Literal["red", "blue"]
    count: typing.Literal[1, 2, 3]


def parse(server):
    """A form as the library asks for it, and one as it asked before."""
    ai = client(server)
    asked = dict(model=MODEL, max_tokens=200, messages=HELLO, extra_body={"temperature": 1})
    parsed = ai.messages.parse(**asked, output_format=Painting).parsed_output
    assert isinstance(parsed, Painting), parsed
    for form in ({"output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}},
                 {"output_format": {"type": "json_schema", "schema": SCHEMA}}):
        answer = ai.messages.create(**asked | {"extra_body": {"temperature": 1, **form}})
        jsonschema.validate(json.loads(answer.content[-1].text), SCHEMA)
    return str(parsed)


def prefill(server):
    """A last message of the assistant is gone on from."""
    ai = client(server)
    asked = dict(model=MODEL, max_tokens=12, extra_body={"temperature": 0})
    begun = "Once upon a time there was"
    answer = ai.messages.create(**asked, messages=[*HELLO, {"role": "assistant", "content": begun}])
    assert begun not in answer.content[0].text, answer
    refused(lambda: ai.messages.create(**asked, messages=[*HELLO, {"role": "assistant", "content": begun + " "}]),
            anthropic.BadRequestError)
    return repr(answer.content[0].text)


def count(server):
    ai = client(server)
    counted = ai.messages.count_tokens(model=MODEL, messages=HELLO).input_tokens
    answer = ai.messages.create(model=MODEL, max_tokens=1, messages=HELLO)
    assert counted == answer.usage.input_tokens + answer.usage.cache_read_input_tokens
    return f"{counted} tokens"


def documents(server):
    ai = client(server)
    source = {"type": "text", "media_type": "text/plain", "data": "A cat sat on a mat."}
    found = {"type": "search_result", "source": "cats", "title": "Cats", "content": [{"type": "text", "text": "A cat."}]}
    asked = [{"role": "user", "content": [{"type": "document", "source": source, "title": "Cats"}, found,
                                          {"type": "text", "text": "Who sat?"}]}]
    counted = ai.messages.count_tokens(model=MODEL, messages=asked).input_tokens
    answer = ai.messages.create(model=MODEL, max_tokens=4, messages=asked)
    assert counted == answer.usage.input_tokens + answer.usage.cache_read_input_tokens
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    refused(lambda: ai.messages.create(model=MODEL, max_tokens=1, messages=[
        {"role": "user", "content": [{"type": "document", "source": source}]}]), anthropic.BadRequestError)
    return f"{counted} tokens"


def errors(server):
    ai = client(server)
    unknown = refused(lambda: ai.messages.create(model="other", max_tokens=1, messages=HELLO), anthropic.NotFoundError)
    assert unknown.body["error"]["type"] == "not_found_error", unknown.body
    wrong = refused(lambda: ai.messages.create(model=MODEL, max_tokens=1, messages=[
        {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "http://x"}}]}]),
        anthropic.BadRequestError)
    assert wrong.body["error"]["type"] == "invalid_request_error", wrong.body
    return "model, picture"


def cancel(server):
    """A stream that is closed ends in the engine."""
    with client(server).messages.stream(model=MODEL, max_tokens=400, messages=HELLO, extra_body={"temperature": 1}) as events:
        for _, _ in zip(range(3), events.text_stream):
            pass
    server.settled()


CHECKS = [messages, stream, tools, parse, prefill, count, documents, errors, cancel]
