"""Strict JSON: what ends by itself is of its schema, by a validator that is not ours."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import openai
from openai_client import client, refused
from schemas import REFUSED, schemas

SCHEMAS, AT_ONCE, LIMIT = 200, 16, 384
FORMATS = jsonschema.Draft202012Validator.FORMAT_CHECKER


def sample(ai, model, at, schema):
    """How one answer ended; raises where it is not of its schema."""
    answer = ai.completions.create(
        model=model, prompt="The answer as JSON: ", max_tokens=LIMIT, temperature=1, seed=at, extra_body={
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}}})
    choice = answer.choices[0]
    if choice.finish_reason == "length":
        return "length"
    try:
        value = json.loads(choice.text)
        jsonschema.Draft202012Validator(schema, format_checker=FORMATS).validate(value)
    except (ValueError, jsonschema.ValidationError) as error:
        raise AssertionError(f"seed {at}, schema {json.dumps(schema)}: {choice.text!r}: {error}") from error
    return choice.finish_reason


def samples(server, model, count):
    ai, made = client(server), schemas(7, SCHEMAS)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ends = Counter(pool.map(lambda at: sample(ai, model, at, made[at % SCHEMAS]), range(count)))
    share = ends["length"] / count
    assert set(ends) <= {"stop", "length"}, ends
    assert share < 0.01, f"{share:.2%} of the answers were cut at {LIMIT} tokens"
    return f"{ends['stop']} valid, {ends['length']} cut at {LIMIT} tokens"


def refusals(server):
    """A keyword that cannot be kept is named."""
    ai = client(server)
    for keyword, schema in REFUSED.items():
        error = refused(lambda schema=schema: ai.completions.create(
            model="story", prompt="a", max_tokens=1, extra_body={"guided_json": schema}), openai.BadRequestError)
        assert error.param == "guided_json" and keyword in error.message, (keyword, error.body)
    return ", ".join(REFUSED)
