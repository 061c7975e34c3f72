"""Writes seeds for the parsers of the server's bodies: for each path one body with many of its fields, what clients send
by mistake, and forms of every kind. What stands in `found/` until a campaign has run are seeds with a few bytes changed.

    python3 fuzz/make_serve_seeds.py
"""

import hashlib
import json
import pathlib
import random

HERE = pathlib.Path(__file__).parent

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
    },
    "required": ["name"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "add", "description": "adds", "parameters": SCHEMA, "strict": True}}
CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{\"x\": 1}"}}
HISTORY = [
    {"role": "developer", "content": "be brief"},
    {"role": "user", "content": [{"type": "text", "text": "add", "cache_control": {"type": "ephemeral"}}], "name": "ann"},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning": "hm"},
    {"role": "tool", "tool_call_id": "c", "content": "2"},
]
SAMPLING = {
    "temperature": 0.7, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "seed": 7, "presence_penalty": 0.5,
    "frequency_penalty": -0.5, "repetition_penalty": 1.1, "logit_bias": {"5": -100}, "stop": ["\n", "end"],
    "stop_token_ids": [2], "allowed_token_ids": [1, 2, 3], "ignore_eos": True, "min_tokens": 1, "n": 2,
    "cache_salt": "s", "cache_prompt": False, "priority": 0, "skip_special_tokens": True,
}
BLOCKS = [
    {"role": "user", "content": [{"type": "text", "text": "add", "cache_control": {"type": "ephemeral"}}]},
    {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "tool_use", "id": "t", "name": "add", "input": {"x": 1}},
    ]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "2", "is_error": False}]},
]
CUSTOM = {"name": "add", "description": "adds", "input_schema": SCHEMA}

BODIES = {
    "chat": ("/v1/chat/completions", {
        "model": "m", "messages": HISTORY, "tools": [TOOL], "tool_choice": "auto", "parallel_tool_calls": False,
        "max_completion_tokens": 5, "stream": True, "stream_options": {"include_usage": True}, "logprobs": True,
        "top_logprobs": 3, "reasoning_effort": "low", "chat_template_kwargs": {"x": 1}, "thinking_token_budget": 9,
        "documents": [{"text": "d"}], "return_token_ids": True, "user": "u", "metadata": {}, **SAMPLING}),
    "chat_schema": ("/v1/chat/completions", {"messages": HISTORY[:2], "response_format": {
        "type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}}),
    "chat_allowed": ("/v1/chat/completions", {"messages": HISTORY[:2], "tools": [TOOL], "tool_choice": {
        "type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "name": "add"}]}}}),
    "samplers": ("/completion", {
        "prompt": "a", "n_predict": 5, "samplers": ["penalties", "dry", "top_n_sigma", "typ_p", "xtc", "temperature", "infill"],
        "dry_multiplier": 0.8, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": -1,
        "dry_sequence_breakers": ["\n", ":"], "xtc_probability": 0.5, "xtc_threshold": 0.1, "typical_p": 0.9, "top_n_sigma": -1,
        "dynatemp_range": 0.5, "dynatemp_exponent": 1.5, "mirostat": 2, "mirostat_tau": 5, "mirostat_eta": 0.1}),
    "chat_thinks": ("/v1/chat/completions", {
        "messages": HISTORY[:2], "thinking": {"type": "enabled", "budget_tokens": 9, "clear_thinking": False},
        "enable_thinking": True, "think": "low", "repeat_penalty": 1.1, "max_tokens": 16.0}),
    "chat_of_another": ("/v1/chat/completions", {
        "messages": HISTORY[:2], "system": "be brief", "stop_sequences": ["x"], "format": "json"}),
    "completions": ("/v1/completions", {
        "model": "m", "prompt": ["a", [1, 2]], "max_tokens": 0, "echo": True, "logprobs": 2, "best_of": 2,
        "return_token_ids": True, "parse_special": False, "structured_outputs": {"regex": "a+"}, **SAMPLING}),
    "completions_suffix": ("/v1/completions", {"prompt": "a", "suffix": "b", "stream": False}),
    "responses": ("/v1/responses", {
        "model": "m", "instructions": "be brief", "tools": [TOOL["function"] | {"type": "function"}], "store": False,
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "add"}]},
            {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}", "id": "f", "status": "completed"},
            {"type": "function_call_output", "call_id": "c", "output": "2"},
        ],
        "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}, "verbosity": "medium"},
        "reasoning": {"effort": "low", "summary": "auto", "budget": 5}, "max_output_tokens": 5, "temperature": 1,
        "top_p": 0.5, "metadata": {"a": "b"}, "include": [], "truncation": "disabled"}),
    "responses_later": ("/v1/responses", {"input": "a", "background": True, "previous_response_id": "resp_1"}),
    "responses_count": ("/v1/responses/input_tokens", {"input": "a", "temperature": 1}),
    "embeddings": ("/v1/embeddings", {"model": "m", "input": ["a", "b"], "encoding_format": "base64", "user": "u"}),
    "rerank": ("/v1/rerank", {"query": "q", "documents": ["a", {"text": "b"}], "top_n": 1, "return_documents": False}),
    "score": ("/v1/score", {"text_1": "a", "text_2": ["b", "c"]}),
    "score_pairs": ("/v1/score", {"queries": ["a", "b"], "documents": ["c", "d"]}),
    "messages": ("/v1/messages", {
        "model": "m", "max_tokens": 5, "system": [{"type": "text", "text": "be brief"}], "messages": BLOCKS,
        "tools": [CUSTOM], "tool_choice": {"type": "tool", "name": "add", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 9}, "temperature": 1, "top_k": 5, "stop_sequences": ["x"],
        "stream": True, "metadata": {"user_id": "u"}}),
    "messages_count": ("/v1/messages/count_tokens", {"messages": BLOCKS[:1], "system": "be brief"}),
    "completion": ("/completion", {
        "prompt": "a", "n_predict": -1, "seed": -1, "repeat_penalty": 1.1, "return_tokens": True, "id_slot": 0,
        "grammar": "root ::= \"a\" [0-9]+", "samplers": None, "n_probs": 0, "stream": False}),
    "infill": ("/infill", {"input_prefix": "a", "input_suffix": "b", "prompt": "c",
                           "input_extra": [{"filename": "f", "text": "t"}]}),
    "tokenize": ("/tokenize", {"content": "a", "add_special": True, "parse_special": False, "with_pieces": True}),
    "tokenize_prompt": ("/tokenize", {"prompt": "a", "add_special_tokens": False, "return_token_strs": True}),
    "tokenize_chat": ("/tokenize", {"messages": HISTORY[:2], "add_generation_prompt": False}),
    "detokenize": ("/detokenize", {"tokens": [1, 2, 3]}),
    "template": ("/apply-template", {"messages": HISTORY, "tools": [TOOL]}),
    "load": ("/models/load", {"model": "m"}),
    "slot": ("/slots/{id}", {"filename": "a.bin"}),
    "prefill": ("/prefill", {"model": "story", "tokens": [1, 2, 3], "cache_salt": "a"}),
    "adapter_scales": ("/lora-adapters", [{"id": 0, "scale": 0.5}, {"id": 1}]),
    "adapter_load": ("/v1/load_lora_adapter", {"lora_name": "a", "lora_path": "a.gguf"}),
    "adapter_unload": ("/v1/unload_lora_adapter", {"lora_name": "a", "model": "m"}),
    "unload": ("/models/unload", {"model": "m"}),
    "show": ("/api/show", {"name": "m", "verbose": True}),
    "ollama_chat": ("/api/chat", {
        "model": "m:latest", "messages": [{"role": "user", "content": "a", "images": []}], "tools": [TOOL],
        "stream": False, "format": SCHEMA, "think": "low", "keep_alive": "1h30m",
        "options": {"temperature": 0, "num_predict": 5, "stop": "x", "num_ctx": 64, "seed": -1, "num_gpu": 1}}),
    "ollama_text": ("/api/generate", {"model": "m", "prompt": "a", "system": "s", "raw": False, "format": "json",
                                      "keep_alive": -1, "context": []}),
    "embed": ("/api/embed", {"model": "m", "input": ["a"], "truncate": True, "keep_alive": 0}),
    "embed_old": ("/api/embeddings", {"model": "m", "prompt": "a"}),
}

MISTAKES = {
    "no_json": "/v1/chat/completions\n{\"messages\": [",
    "no_object": "/v1/completions\n[1]",
    "deep": "/v1/chat/completions\n" + "[" * 200,
    "deep_schema": "/v1/completions\n{\"prompt\":\"a\",\"guided_json\":" + "{\"items\":" * 100 + "{}" + "}" * 101,
    "twice": "/v1/completions\n{\"prompt\":\"a\",\"prompt\":[1],\"n\":1e400}",
    "numbers": "/v1/completions\n{\"prompt\":[4294967296],\"seed\":18446744073709551616,\"top_k\":-9223372036854775808}",
    "surrogate": "/tokenize\n{\"content\":\"\\ud800\"}",
    "nulls": "/v1/messages\n{\"max_tokens\":null,\"messages\":null,\"x\":null}",
    "images": "/v1/messages\n" + json.dumps({"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "image"}]}]}),
    "choice": "/v1/chat/completions\n" + json.dumps({"messages": HISTORY[:1], "tool_choice": {"type": "function", "name": 3}}),
    "time": "/api/generate\n{\"keep_alive\":\"99999999999999999999h\"}",
    "nowhere": "/v1/nothing\n{}",
}

FORMS = {
    "schema": {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}},
    "object": {"response_format": {"type": "json_object"}},
    "text_of_schema": {"guided_json": json.dumps(SCHEMA)},
    "references": {"json_schema": {"$defs": {"t": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {
        "l": {"$ref": "#/$defs/t"}}, "additionalProperties": False}]}}, "$ref": "#/$defs/t"}},
    "unsupported": {"guided_json": {"type": "array", "uniqueItems": True, "contains": {"type": "integer"}}},
    "formats": {"guided_json": {"type": "string", "format": "date-time", "pattern": "^\\d{4}"}},
    "numbers": {"guided_json": {"type": "number", "exclusiveMinimum": -1e300, "multipleOf": 0.1}},
    "all_of": {"guided_json": {"allOf": [{"required": ["a"]}, {"properties": {"a": {"const": {"b": [1, None]}}}}]}},
    "quoted": {"guided_json": {"$ref": ["a" + "ä" * 60]}},
    "quoted_later": {"guided_json": {"items": {"minimum": "a" + "ä" * 60, "type": "number"}}},
    "regex": {"guided_regex": "^(a|b){1,5}[^\\n]?\\p{L}+$"},
    "regex_wide": {"structured_outputs": {"regex": "((((a{1,50}){1,50}){1,50}){1,50})"}},
    "choice": {"guided_choice": ["a", "äöü", "(", "\\", "\u0000"]},
    "gbnf": {"grammar": "root ::= (word \" \"?)* # words\nword ::= [a-zA-Z]{1,8} | \"\\x41\" | [^\\n\\]]+"},
    "gbnf_recursive": {"grammar": "root ::= \"(\" root? \")\" | \"x\""},
    "gbnf_wrong": {"grammar": "root ::= other\nother ::= \"a\"{3,1}"},
    "lark": {"structured_outputs": {"grammar": "start: \"a\" b+\nb: /[0-9]/ | \"(\" b \")\""}},
    "lark_json": {"guided_grammar": "start: %json {\"type\": \"integer\"}"},
}

# Schemas of whole requests, each as a tool's parameters and as the form of the answer.
SCHEMAS = {
    "patterns": {"type": "object", "properties": {"score": {"type": "integer", "minimum": 0}}, "required": ["score"],
                 "additionalProperties": False, "patternProperties": {"^score$": {"type": "integer"}, "^x": {"maxLength": 2}}},
    "formats": {"type": "object", "properties": {"p": {"type": "string", "format": "path"}, "d": {"format": "date"}}},
    "integers": {"type": "integer", "minimum": -9223372036854775808, "maximum": 9223372036854775807, "multipleOf": 3},
    "names": {"$defs": {"a b": {"const": 1.0, "$anchor": "n"}}, "anyOf": [{"$ref": "#/$defs/a%20b"}, {"$ref": "#n"}]},
    "itself": {"$defs": {"t": {"type": "object", "properties": {"l": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]}},
                               "required": ["l"]}}, "$ref": "#/$defs/t"},
    "logic": {"type": "object", "properties": {"a": {"enum": [1, "b"]}}, "if": {"required": ["a"]}, "then": {"required": ["b"]},
              "not": {"required": ["c"]}, "oneOf": [{"required": ["d"]}, {"required": ["e"]}], "dependentRequired": {"a": ["f"]},
              "propertyNames": {"pattern": "^[a-f]$"}, "minProperties": 1},
    "lists": {"type": "array", "prefixItems": [{"type": "null"}], "items": {"enum": [1, 2]}, "contains": {"const": 2},
              "uniqueItems": False, "maxItems": 3.0},
    "old": {"$schema": "http://json-schema.org/draft-04/schema#", "id": "x", "minimum": 1, "exclusiveMinimum": True,
            "items": [{"type": "string"}], "additionalItems": False, "dependencies": {"a": ["b"]}},
}


def changed(seed: bytes, random_: random.Random) -> bytes:
    """The seed with some bytes set, left out or doubled."""
    data = bytearray(seed)
    # The path stays, so that what is behind it is read.
    first = data.find(b"\n") + 1
    for _ in range(1 + random_.randrange(4)):
        at = first + random_.randrange(max(1, len(data) - first))
        match random_.randrange(3):
            case 0 if at < len(data):
                data[at] = random_.choice(b"\"{}[]:,0-1e.\\ntf\x00\xff")
            case 1:
                del data[at:at + 1 + random_.randrange(4)]
            case _:
                data[at:at] = data[at:at + 1 + random_.randrange(8)]
    return bytes(data)


def write(name: str, seeds: dict[str, bytes]) -> None:
    for folder in ("corpus", "found"):
        (HERE / folder / name).mkdir(parents=True, exist_ok=True)
    random_ = random.Random(name)
    for title, seed in seeds.items():
        (HERE / "corpus" / name / title).write_bytes(seed)
        for _ in range(2):
            found = changed(seed, random_)
            (HERE / "found" / name / hashlib.sha1(found).hexdigest()).write_bytes(found)


def main() -> None:
    bodies = {title: f"{path}\n{json.dumps(body)}".encode() for title, (path, body) in BODIES.items()}
    write("serve_body", bodies | {title: text.encode() for title, text in MISTAKES.items()})
    write("serve_schema", {title: json.dumps({
        "model": "m", "messages": [{"role": "user", "content": "a"}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
    }).encode() for title, schema in SCHEMAS.items()})
    write("serve_form", {title: json.dumps(body).encode() for title, body in FORMS.items()})


main()
