"""What has no library of its own: llama.cpp's paths, vLLM's forms, scores. Answers are held to the schemas of /openapi.json
by the library jsonschema."""

import json
import urllib.error

import jsonschema
from openai_client import HELLO, MODEL, SCHEMA


def asked(server, document, path, body=None, method=None, at=None):
    """The answer of a path, which has the schema that the document promises."""
    answer = server.ask(at or path, body)
    operation = document["paths"][path][method or ("get" if body is None else "post")]
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator(schema | {"components": document["components"]}).validate(answer)
    return answer


def schemas(server):
    """One answer of each path, by its schema."""
    document = server.ask("/openapi.json")
    bodies = {
        "/v1/chat/completions": {"model": MODEL, "messages": HELLO, "max_tokens": 4, "logprobs": True, "top_logprobs": 1},
        "/v1/completions": {"model": MODEL, "prompt": "a", "max_tokens": 4, "logprobs": 1, "echo": True},
        "/v1/responses": {"model": MODEL, "input": "a", "max_output_tokens": 4},
        "/v1/responses/input_tokens": {"model": MODEL, "input": "a"},
        "/v1/embeddings": {"model": "embed", "input": ["a"]},
        "/v1/rerank": {"model": "score", "query": "a cat", "documents": ["a dog", {"text": "a cat"}], "top_n": 1},
        "/v1/score": {"model": "score", "text_1": "a", "text_2": ["b", "c"]},
        "/v1/messages": {"model": MODEL, "messages": HELLO, "max_tokens": 4},
        "/v1/messages/count_tokens": {"model": MODEL, "messages": HELLO},
        "/completion": {"model": MODEL, "prompt": "a", "n_predict": 4},
        "/tokenize": {"model": MODEL, "content": "a cat", "with_pieces": True},
        "/detokenize": {"model": MODEL, "tokens": [5, 6]},
        "/apply-template": {"model": MODEL, "messages": HELLO},
        "/models/load": {"model": MODEL},
        "/models/unload": {"model": "random"},
        "/api/show": {"model": MODEL},
        "/api/chat": {"model": MODEL, "messages": HELLO, "stream": False, "options": {"num_predict": 4}},
        "/api/generate": {"model": MODEL, "prompt": "a", "stream": False, "options": {"num_predict": 4}},
        "/api/embed": {"model": "embed", "input": "a"},
        "/api/embeddings": {"model": "embed", "prompt": "a"},
    }
    seen = 0
    for path, methods in document["paths"].items():
        if path in bodies:
            asked(server, document, path, bodies.pop(path))
            seen += 1
        elif "get" in methods and not path.startswith(("/metrics", "/v1/responses/")):
            asked(server, document, path, at=path.replace("{id}", MODEL))
            seen += 1
    assert not bodies, f"not in the document: {list(bodies)}"
    return f"{seen} answers"


def tokenized(server):
    text = "The cat sat."
    of_llama = server.ask("/tokenize", {"model": MODEL, "content": text, "add_special": True})["tokens"]
    of_vllm = server.ask("/tokenize", {"model": MODEL, "prompt": text})
    assert of_llama == of_vllm["tokens"] and of_vllm["count"] == len(of_llama)
    back = server.ask("/detokenize", {"model": MODEL, "tokens": server.ask(
        "/tokenize", {"model": MODEL, "content": text})["tokens"]})
    assert back["content"].strip() == text and back["prompt"] == back["content"], back
    return f"{len(of_llama)} tokens"


def forms(server):
    """Each field that asks for a form."""
    asked_ = {"model": MODEL, "prompt": "a", "max_tokens": 100, "temperature": 1}
    of = lambda more: server.ask("/v1/completions", asked_ | more)["choices"][0]["text"]
    assert of({"structured_outputs": {"choice": ["a cat", "a dog"]}}) in ("a cat", "a dog")
    assert of({"guided_regex": "[0-9]{3}"}).isdigit()
    assert of({"grammar": "root ::= \"x\" [0-9]"})[0] == "x"
    jsonschema.validate(json.loads(of({"guided_json": SCHEMA})), SCHEMA)
    try:
        server.ask("/v1/completions", asked_ | {"guided_regex": "("})
    except urllib.error.HTTPError as error:
        assert error.code == 400 and json.loads(error.read())["error"]["param"] == "guided_regex"
    else:
        raise AssertionError("a broken expression was taken")
    return "choice, expression, grammar, schema"


CHECKS = [schemas, tokenized, forms]
