"""ollama's interface through ollama's own library."""

import json
import urllib.error

import jsonschema
import ollama
from openai_client import HELLO, MODEL, SCHEMA, TOOL, refused

OPTIONS = {"temperature": 0, "num_predict": 20}

# Characters of every length in UTF-8, those that some readers take for ends of lines, and those that belong together.
TEXTS = [
    "plain", "caf\u00e9 na\u00efve", "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0", "\u0434\u0430, \u043d\u0435\u0442",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1eb\U0001f1f7 \u2764\ufe0f", "a\u2028b\u2029c\u0085d",
    "e\u0301 n\u0303", "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd", "\U00010437\U0002070e", "tab\tand\nline\r\nend \x7f",
    "\ufeff\u200b\u00a0", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "quote\" back\\ slash/", "\ufffd \uffff\U0010ffff",
]


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


def unicode(server):
    """Any text comes through a stream as it was said: a form leaves the model nothing else to say."""
    ai = client(server)
    for text in TEXTS:
        asked = dict(model=MODEL, messages=HELLO, format={"enum": [text]}, options={"num_predict": 400, "seed": 1})
        whole = ai.chat(**asked).message.content
        parts = list(ai.chat(**asked, stream=True))
        assert json.loads(whole) == text, f"{text!r} came as {whole!r}"
        assert "".join(part.message.content for part in parts) == whole, f"{text!r} in parts"
        assert parts[-1].done and parts[-1].eval_count > 0
        prompted = ai.generate(model=MODEL, prompt=text, stream=True, options=OPTIONS)
        assert list(prompted)[-1].done
    return f"{len(TEXTS)} texts"


def known(server):
    """What clients show of a model before they ask it anything."""
    ai = client(server)
    listed = {model.model: model for model in ai.list().models}
    for name in (MODEL, "embed"):
        shown, one = ai.show(name), listed[name]
        assert one.size > 0 and one.digest and one.modified_at, one
        assert one.details.parameter_size and one.details.quantization_level and one.details.format, one.details
        assert shown.details.parameter_size == one.details.parameter_size
        assert shown.modified_at, shown
        lengths = [value for key, value in shown.modelinfo.items() if key.endswith(".context_length")]
        assert lengths and lengths[0] > 0 and shown.modelinfo["general.parameter_count"] > 0, shown.modelinfo
    assert "embedding" in ai.show("embed").capabilities
    assert any(model.size > 0 and model.context_length > 0 for model in ai.ps().models)
    return f"{listed[MODEL].details.parameter_size} {listed[MODEL].details.quantization_level}"


def pull(server):
    ai = client(server)
    assert ai.pull(MODEL).status == "success"
    states = list(ai.pull(f"{MODEL}:latest", stream=True))
    assert states[0].status == "pulling manifest" and states[-1].status == "success", states
    assert all(state.completed == state.total for state in states if state.total)
    absent = refused(lambda: ai.pull("llama3.2"), ollama.ResponseError)
    assert absent.status_code == 404 and "yirage pull llama3.2" in absent.error, absent
    streamed = refused(lambda: list(ai.pull("llama3.2", stream=True)), ollama.ResponseError)
    assert streamed.status_code == 404, streamed
    for change in (lambda: ai.delete(MODEL), lambda: ai.copy(MODEL, "other"), lambda: ai.push(MODEL),
                   lambda: ai.create("other", from_=MODEL)):
        assert refused(change, ollama.ResponseError).status_code == 501
    return "pulled, and nothing is changed"


def thinks(server):
    ai = client(server)
    asked = dict(model=MODEL, messages=HELLO, options=OPTIONS)
    for think in (True, False, "low", "high"):
        assert ai.chat(**asked, think=think).done
    wrong = refused(lambda: server.ask("/api/chat", asked | {"think": "hard", "stream": False}), urllib.error.HTTPError)
    assert wrong.code == 400, wrong
    return "as it is told"


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
    assert len(ai.embed(model="embed", input="a cat", dimensions=3).embeddings[0]) == 3
    assert list(ai.embed(model="embed", input="").embeddings) == []
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


CHECKS = [models, known, pull, generate, chat, unicode, unicode_stream, thinks, embed, errors, cancel]
