"""ollama's interface through ollama's own library."""

import json

import jsonschema
import ollama
from openai_client import HELLO, MODEL, SCHEMA, TOOL, refused

OPTIONS = {"temperature": 0, "num_predict": 20}


def client(server):
    return ollama.Client(host=server.url, timeout=120)


def models(server):
    ai = client(server)
    names = {model.model for model in ai.list().models}
    assert MODEL in names, names
    assert MODEL in {model.model for model in ai.ps().models}
    shown = ai.show(MODEL)
    assert "completion" in shown.capabilities, shown
    return ", ".join(sorted(names))


def generate(server):
    ai = client(server)
    asked = dict(model=MODEL, prompt="Once upon a time", options=OPTIONS, raw=True)
    whole = ai.generate(**asked)
    parts = list(ai.generate(**asked, stream=True))
    assert "".join(part.response for part in parts) == whole.response and parts[-1].done
    assert whole.eval_count == parts[-1].eval_count and whole.done_reason == parts[-1].done_reason
    return repr(whole.response)


def chat(server):
    ai = client(server)
    whole = ai.chat(model=f"{MODEL}:latest", messages=HELLO, options=OPTIONS)
    parts = ai.chat(model=MODEL, messages=HELLO, options=OPTIONS, stream=True)
    assert "".join(part.message.content for part in parts) == whole.message.content
    formed = ai.chat(model=MODEL, messages=HELLO, format=SCHEMA, options={"num_predict": 100, "seed": 2})
    jsonschema.validate(json.loads(formed.message.content), SCHEMA)
    # It decides by itself, and this one was not made to call tools.
    assert ai.chat(model=MODEL, messages=HELLO, tools=[TOOL], options=OPTIONS).done
    return formed.message.content


def unicode_stream(server):
    """Characters at which some clients end lines."""
    ai, told = client(server), "a\u2028b\u2029c\u0085d\U0001f600\u00e9"
    parts = list(ai.chat(model=MODEL, messages=HELLO, format={"enum": [told]}, options={"num_predict": 100}, stream=True))
    assert json.loads("".join(part.message.content for part in parts)) == told and parts[-1].done
    return repr(told)


def embed(server):
    ai = client(server)
    several = ai.embed(model="embed", input=["a cat", "a dog"]).embeddings
    one = ai.embeddings(model="embed", prompt="a cat").embedding
    assert len(several) == 2 and list(several[0]) == list(one)
    return f"{len(one)} dimensions"


def errors(server):
    ai = client(server)
    unknown = refused(lambda: ai.chat(model="other", messages=HELLO), ollama.ResponseError)
    assert unknown.status_code == 404 and "other" in unknown.error, unknown
    picture = refused(lambda: ai.generate(model=MODEL, prompt="a", images=[b"x"]), ollama.ResponseError)
    assert picture.status_code == 400, picture
    unloaded = ai.generate(model="random", prompt="", keep_alive=0)
    assert unloaded.done_reason == "unload"
    return "model, picture"


def cancel(server):
    """A stream that is closed ends in the engine."""
    parts = client(server).generate(model=MODEL, prompt="Once", stream=True, raw=True,
                                    options={"temperature": 1, "num_predict": 400})
    for _, _ in zip(range(3), parts):
        pass
    parts.close()
    server.settled()


CHECKS = [models, generate, chat, unicode_stream, embed, errors, cancel]
