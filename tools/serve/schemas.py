"""Schemas of many kinds from a seed, and schemas that have to be refused."""

import random

KEYS = ["name", "age", "a b", "größe", "x", "list", "ok", "kind"]

# A keyword that a constraint cannot keep to token by token, in a schema that is sound besides.
REFUSED = {
    "pattern": {"type": "object", "properties": {"a": {"not": {"pattern": "a"}}}},
    "uniqueItems": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    "minLength": {"type": "string", "minLength": 1000000},
    "multipleOf": {"type": "integer", "multipleOf": 0},
    "unevaluatedProperties": {"anyOf": [{"required": ["a"]}], "unevaluatedProperties": False},
}


def scalar(rng):
    low = rng.randrange(-50, 50)
    return rng.choice([
        {"type": "boolean"},
        {"type": "null"},
        {"type": "integer", "minimum": low, "maximum": low + rng.randrange(1, 5000)},
        {"type": "integer", "exclusiveMinimum": low, "exclusiveMaximum": low + 10},
        # A number may have digits without end, and a small model of stories never ends one that has begun.
        {"type": "number", "minimum": low, "maximum": low + 1 + rng.random(), "multipleOf": 0.125},
        {"type": "string", "maxLength": rng.randrange(1, 9)},
        {"type": "string", "minLength": 1, "maxLength": 4},
        {"type": "string", "pattern": rng.choice(["^[a-z]{1,5}$", "^(ab|cd)+x$", "^\\d{2}-\\d{2}$", "^[^\"]{0,6}$"])},
        {"type": "string", "format": rng.choice(["date", "time", "date-time", "uuid", "ipv4"])},
        {"const": rng.choice([1, -0.5, "ü\"\\", None, [1, {"a": []}], {"k": "v"}])},
        {"enum": rng.sample([1, "two", None, True, [3], {"f": 4}, "größer", ""], 3)},
        {"type": ["integer", "null"], "minimum": 0, "maximum": 99},
    ])


def schema(rng, depth):
    """A schema whose values are short, nested so deep at most."""
    if depth == 0:
        return scalar(rng)
    kind = rng.randrange(6)
    if kind == 0:
        return scalar(rng)
    if kind == 1:
        least = rng.randrange(3)
        return {"type": "array", "items": schema(rng, depth - 1), "minItems": least, "maxItems": least + rng.randrange(3)}
    if kind == 2:
        items = [schema(rng, depth - 1) for _ in range(rng.randrange(1, 4))]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    if kind == 3:
        return {"anyOf": [schema(rng, depth - 1) for _ in range(2)]}
    names = rng.sample(KEYS, rng.randrange(1, 5))
    made = {"type": "object", "properties": {name: schema(rng, depth - 1) for name in names}}
    made["required"] = rng.sample(names, rng.randrange(len(names) + 1))
    made["additionalProperties"] = False
    return made


def special(rng):
    """Schemas that refer to themselves and to parts of themselves."""
    leaf = scalar(rng)
    return rng.choice([
        {"$defs": {"t": {"type": "object", "properties": {"v": leaf, "next": {"anyOf": [{"type": "null"}, {
            "$ref": "#/$defs/t"}]}}, "required": ["v", "next"], "additionalProperties": False}}, "$ref": "#/$defs/t"},
        {"$defs": {"leaf": leaf}, "type": "array", "items": {"$ref": "#/$defs/leaf"}, "minItems": 1, "maxItems": 3},
        {"allOf": [{"type": "object", "properties": {"a": leaf, "b": {"type": "boolean"}}, "required": ["a"],
                    "additionalProperties": False}, {"type": "object", "required": ["b"]}]},
    ])


def schemas(seed, count):
    rng = random.Random(seed)
    return [special(rng) if at % 10 == 9 else schema(rng, 1 + at % 3) for at in range(count)]
