"""Every endpoint of OpenAI's interface through OpenAI's own library."""

import json
import math

import jsonschema
import openai

SCHEMA = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}, "count": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["colour", "count"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "paint", "description": "paints", "parameters": SCHEMA}}
HELLO = [{"role": "user", "content": "Tell me of a cat."}]
MODEL = "story"


def client(server):
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=120)


def models(server):
    ai = client(server)
    names = {model.id for model in ai.models.list()}
    assert {"story", "embed", "score"} <= names, names
    assert ai.models.retrieve(MODEL).id == MODEL
    return ", ".join(sorted(names))


def chat(server):
    answer = client(server).chat.completions.create(
        model=MODEL, messages=HELLO, max_completion_tokens=12, temperature=0, n=2, logprobs=True, top_logprobs=2)
    assert len(answer.choices) == 2 and answer.usage.completion_tokens > 0
    one, two = answer.choices
    assert one.message.content == two.message.content, "greedy answers differ"
    assert all(len(token.top_logprobs) == 2 for token in one.logprobs.content)
    return repr(one.message.content)


def chat_stream(server):
    ai = client(server)
    asked = dict(model=MODEL, messages=HELLO, max_completion_tokens=30, temperature=1, seed=5)
    whole = ai.chat.completions.create(**asked)
    text, usage, end = "", None, None
    for chunk in ai.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            end = choice.finish_reason or end
    assert text == whole.choices[0].message.content, "a stream says something else"
    assert end == whole.choices[0].finish_reason and usage.completion_tokens == whole.usage.completion_tokens
    return f"{usage.completion_tokens} tokens"


def arguments_of(call):
    assert call.type == "function" and call.function.name == "paint", call
    arguments = json.loads(call.function.arguments)
    jsonschema.validate(arguments, SCHEMA)
    return arguments


def chat_tools(server):
    ai = client(server)
    asked = dict(model=MODEL, messages=HELLO, tools=[TOOL], max_completion_tokens=200, temperature=1, seed=3,
                 parallel_tool_calls=False, tool_choice={"type": "function", "function": {"name": "paint"}})
    answer = ai.chat.completions.create(**asked).choices[0]
    assert answer.finish_reason == "tool_calls" and len(answer.message.tool_calls) == 1, answer
    call = answer.message.tool_calls[0]
    arguments = arguments_of(call)
    pieces = {}
    for chunk in ai.chat.completions.create(**asked, stream=True):
        for part in (chunk.choices[0].delta.tool_calls or []) if chunk.choices else []:
            name, text = pieces.get(part.index, ("", ""))
            pieces[part.index] = (name or part.function.name, text + (part.function.arguments or ""))
    assert pieces == {0: ("paint", call.function.arguments)}, pieces
    history = HELLO + [answer.message.model_dump(exclude_none=True),
                       {"role": "tool", "tool_call_id": call.id, "content": "painted"}]
    assert ai.chat.completions.create(model=MODEL, messages=history, tools=[TOOL], max_completion_tokens=8).choices
    return str(arguments)


def chat_schema(server):
    answer = client(server).chat.completions.create(
        model=MODEL, messages=HELLO, max_completion_tokens=100, temperature=1, seed=1,
        response_format={"type": "json_schema", "json_schema": {"name": "paint", "schema": SCHEMA, "strict": True}})
    assert answer.choices[0].finish_reason == "stop", answer
    jsonschema.validate(json.loads(answer.choices[0].message.content), SCHEMA)
    return answer.choices[0].message.content


def completions(server):
    ai = client(server)
    asked = dict(model=MODEL, prompt="Once upon a time", max_tokens=10, temperature=0)
    answer = ai.completions.create(**asked, echo=True, logprobs=2)
    assert answer.choices[0].text.startswith("Once upon a time"), answer
    logprobs = answer.choices[0].logprobs
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == len(logprobs.text_offset)
    assert logprobs.token_logprobs[0] is None and all(value <= 0 for value in logprobs.token_logprobs[1:])
    plain = ai.completions.create(**asked).choices[0].text
    streamed = "".join(chunk.choices[0].text for chunk in ai.completions.create(**asked, stream=True) if chunk.choices)
    assert plain == streamed and answer.choices[0].text == "Once upon a time" + plain
    several = ai.completions.create(**asked | {"prompt": [[1, 5, 9], [1, 5]]})
    assert [choice.index for choice in several.choices] == [0, 1]
    return repr(plain)


def embeddings(server):
    ai = client(server)
    texts = ["The cat sat on the mat.", "A big dog, running!"]
    packed = ai.embeddings.create(model="embed", input=texts)
    plain = ai.embeddings.create(model="embed", input=texts, encoding_format="float")
    for one, other in zip(packed.data, plain.data, strict=True):
        assert len(one.embedding) == len(other.embedding)
        assert all(abs(a - b) <= 1e-6 * max(1, abs(b)) for a, b in zip(one.embedding, other.embedding, strict=True))
    size = len(plain.data[0].embedding)
    for wanted in (1, 3, size):
        short = ai.embeddings.create(model="embed", input=texts, dimensions=wanted)
        for one, whole in zip(short.data, plain.data, strict=True):
            length = math.sqrt(sum(x * x for x in whole.embedding[:wanted]))
            assert len(one.embedding) == wanted
            assert all(abs(a - b / length) < 1e-5 for a, b in zip(one.embedding, whole.embedding))
    for wrong in (dict(input=""), dict(input=[]), dict(input=["a", ""]), dict(input=[[]]), dict(input="a", dimensions=0),
                  dict(input="a", dimensions=size + 1)):
        error = refused(lambda: ai.embeddings.create(**{"model": "embed"} | wrong), openai.BadRequestError)
        assert error.param.split("[")[0] in wrong, error.body
    assert short.usage.prompt_tokens == short.usage.total_tokens > 0
    return f"{size} dimensions"


def responses(server):
    ai = client(server)
    asked = dict(model=MODEL, input="Tell me of a cat.", max_output_tokens=20, temperature=0)
    first = ai.responses.create(**asked)
    assert first.status in ("completed", "incomplete") and first.output_text, first
    assert ai.responses.retrieve(first.id).id == first.id
    second = ai.responses.create(model=MODEL, input="And then?", max_output_tokens=5, previous_response_id=first.id)
    assert second.usage.input_tokens > first.usage.input_tokens
    # What was told is referred to by its name.
    question = {"role": "user", "content": "And then?"}
    whole, named = ([{"role": "user", "content": "Tell me of a cat."}, item, question] for item in (
        first.output[0].model_dump(exclude_none=True), {"type": "item_reference", "id": first.output[0].id}))
    count = lambda items: ai.responses.input_tokens.count(model=MODEL, input=items).input_tokens
    assert count(named) == count(whole) > first.usage.input_tokens
    kinds, text = [], ""
    for event in ai.responses.create(**asked, stream=True):
        kinds.append(event.type)
        text += event.delta if event.type == "response.output_text.delta" else ""
    assert kinds[0] == "response.created" and kinds[-1] in ("response.completed", "response.incomplete"), kinds
    assert text == first.output_text
    ai.responses.delete(first.id)
    refused(lambda: ai.responses.retrieve(first.id), openai.NotFoundError)
    return f"{len(kinds)} events"


def responses_later(server):
    ai = client(server)
    begun = ai.responses.create(model=MODEL, input="Tell me of a cat.", max_output_tokens=300, background=True,
                                temperature=1)
    assert begun.status == "in_progress"
    ended = ai.responses.cancel(begun.id)
    assert ended.status in ("cancelled", "completed", "incomplete"), ended.status
    return ended.status


def responses_forms(server):
    ai = client(server)
    tool = {"type": "function", **TOOL["function"]}
    called = ai.responses.create(model=MODEL, input="a", tools=[tool], tool_choice="required", max_output_tokens=200,
                                 parallel_tool_calls=False)
    call = called.output[-1]
    assert call.type == "function_call" and call.name == "paint", called
    jsonschema.validate(json.loads(call.arguments), SCHEMA)
    formed = ai.responses.create(model=MODEL, input="a", max_output_tokens=100, text={
        "format": {"type": "json_schema", "name": "paint", "schema": SCHEMA, "strict": True}})
    jsonschema.validate(json.loads(formed.output_text), SCHEMA)
    return formed.output_text


def nothing(server):
    """Fields that ask for nothing are taken, and those that change nothing are named."""
    ai = client(server)
    asked = dict(model=MODEL, messages=HELLO, max_completion_tokens=4, temperature=0)
    usual = ai.chat.completions.create(**asked).choices[0].message.content
    for more in [dict(logit_bias={"foo": 0}), dict(logit_bias={}), dict(top_logprobs=0), dict(stop=[]), dict(stop=""),
                 dict(stream_options={"include_usage": False}), dict(modalities=["text"]), dict(tools=[]),
                 dict(tool_choice="none"), dict(parallel_tool_calls=True), dict(response_format={"type": "text"}),
                 dict(functions=[]), dict(function_call="none"), dict(store=False), dict(service_tier="auto"),
                 dict(verbosity="medium"), dict(reasoning_effort="none"), dict(n=None, seed=None, user=None)]:
        raw = ai.chat.completions.with_raw_response.create(**asked | more)
        assert "x-yirage-ignored" not in raw.headers, (more, dict(raw.headers))
        assert raw.parse().choices[0].message.content == usual, more
    named = dict(store=True, web_search_options={}, audio={"format": "wav", "voice": "alloy"}, verbosity="low",
                 prediction={"type": "content", "content": "a"}, service_tier="flex", metadata={"a": "b"})
    raw = ai.chat.completions.with_raw_response.create(**asked | named)
    assert raw.headers["x-yirage-ignored"].split(",") == sorted(named), dict(raw.headers)
    empty = ai.chat.completions.create(**asked | {"max_completion_tokens": 0})
    assert empty.choices[0].finish_reason == "length" and empty.usage.completion_tokens == 0
    echoed = ai.completions.create(model=MODEL, prompt="Once <s>", max_tokens=0, echo=True, best_of=0)
    assert echoed.choices[0].text == "Once <s>", echoed
    for wrong in [dict(max_completion_tokens=-2), dict(reasoning_effort="hard"), dict(user=3), dict(verbosity="loud"),
                  dict(logit_bias={"foo": 1}), dict(service_tier="fastest"), dict(modalities=["audio"]), dict(n=0)]:
        error = refused(lambda: ai.chat.completions.create(**asked | wrong), openai.BadRequestError)
        assert error.param == next(iter(wrong)) and error.type == "invalid_request_error", error.body
    return f"{len(named)} fields are named"


def refused(run, kind):
    try:
        run()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was expected, and nothing was refused")


def errors(server):
    ai = client(server)
    asked = dict(model=MODEL, messages=HELLO, max_completion_tokens=2)
    unknown = refused(lambda: ai.chat.completions.create(**asked | {"model": "other"}), openai.NotFoundError)
    assert unknown.code == "model_not_found" and unknown.param == "model", unknown.body
    mistyped = refused(lambda: ai.chat.completions.create(**asked, extra_body={"temprature": 1}), openai.BadRequestError)
    assert mistyped.param == "temprature", mistyped.body
    far = refused(lambda: ai.chat.completions.create(**asked | {"temperature": 1000}), openai.BadRequestError)
    assert far.param == "temperature", far.body
    long = [{"role": "user", "content": "once upon a time " * 20_000}]
    long = refused(lambda: ai.chat.completions.create(**asked | {"messages": long}), openai.BadRequestError)
    assert long.code == "context_length_exceeded", long.body
    cut = ai.chat.completions.with_raw_response.create(**asked | {"max_completion_tokens": 10**6}, stop=[" "])
    assert cut.headers["x-yirage-clipped"].startswith("max_tokens="), dict(cut.headers)
    raw = ai.chat.completions.with_raw_response.create(**asked, user="u", extra_headers={"x-request-id": "mine"})
    assert raw.headers["x-request-id"] == "mine" and raw.headers["x-yirage-ignored"] == "user", dict(raw.headers)
    return "model, field, range, length"


def agent(server):
    """Turns as Codex has them: nothing is kept, so each has all that was said, tools that nobody here runs among it."""
    ai = client(server)
    tools = [{"type": "function", "name": "paint", "description": "paints", "strict": False, "parameters": SCHEMA},
             {"type": "custom", "name": "apply_patch", "description": "patches",
              "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}},
             {"type": "web_search"}, {"type": "local_shell"}]
    asked = dict(model=MODEL, instructions="You are an agent.", tools=tools, parallel_tool_calls=True, store=False,
                 reasoning={"effort": "medium", "summary": "auto"}, include=["reasoning.encrypted_content"],
                 prompt_cache_key="0", text={"verbosity": "low"}, max_output_tokens=30, temperature=1,
                 extra_body={"client_metadata": {"turn": "1"}})
    said = [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Paint a cat."}]}]
    named = {"type": "function", "name": "paint"}
    for turn in range(2):
        with ai.responses.stream(input=said, tool_choice=named if turn == 0 else "auto", **asked) as events:
            final = [event for event in events][-1].response
        assert final.status in ("completed", "incomplete") and final.usage.input_tokens > 0, final
        for item in final.output:
            said.append(item.model_dump(exclude_none=True))
            if item.type == "function_call":
                said.append({"type": "function_call_output", "call_id": item.call_id,
                             "output": [{"type": "input_text", "text": "painted"}]})
        said += [{"type": "custom_tool_call", "call_id": f"c{turn}", "name": "apply_patch", "input": "*** Begin Patch"},
                 {"type": "custom_tool_call_output", "call_id": f"c{turn}", "output": "Success."},
                 {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]}]
    wrong = refused(lambda: ai.responses.create(input="a", tool_choice={"type": "web_search"}, model=MODEL, tools=tools),
                    openai.BadRequestError)
    assert wrong.param == "tool_choice", wrong.body
    kept = ai.responses.create(model=MODEL, input="Tell me of a cat.", max_output_tokens=4)
    items = [item.content[0].text for item in ai.responses.input_items.list(kept.id)]
    assert items == ["Tell me of a cat."], items
    return f"{len(said)} items"


def cancel(server):
    """A stream that is closed ends in the engine."""
    stream = client(server).completions.create(model=MODEL, prompt="Once", max_tokens=400, stream=True, n=8,
                                               extra_body={"ignore_eos": True})
    for _, _ in zip(range(3), stream):
        pass
    stream.close()
    server.settled()


CHECKS = [models, chat, chat_stream, chat_tools, chat_schema, completions, nothing, embeddings, responses, responses_later,
          responses_forms, agent, errors, cancel]
