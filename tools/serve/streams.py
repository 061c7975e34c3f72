"""Many streams at once, each of which says what its request says alone."""

import asyncio
import json
import random
import time

import httpx

STREAMS = 256
# Memory may grow by so much from the end of the first third to the last round, each time once the server is idle.
GROWTH = 0.02
# A server is idle, and has given back what it does not use, after so many seconds.
IDLE = 3
# By then threads, their arenas and the program's own pages are in memory, on a machine that has little time for it as well.
SETTLED = 10


def recipe(at):
    rng = random.Random(at)
    body = {
        "model": "story", "prompt": [1] + [3 + rng.randrange(300) for _ in range(1 + rng.randrange(60))],
        "max_tokens": 8 + rng.randrange(56), "stream": True, "seed": at,
        "temperature": rng.choice([0, 0.7, 1, 1.3]), "ignore_eos": rng.random() < 0.5,
    }
    if rng.random() < 0.2:
        # What has a form ends by itself.
        body |= {"guided_regex": "[a-z ]{10,40}", "ignore_eos": False}
    if rng.random() < 0.2:
        body["stop"] = [" the"]
    return body


async def stream(http, body):
    """Text and end of one stream."""
    text, end = "", None
    async with http.stream("POST", "/v1/completions", json=body) as response:
        if response.status_code != 200:
            raise AssertionError(f"{response.status_code}: {(await response.aread()).decode()}")
        async for line in response.aiter_lines():
            if not line.startswith("data: "):
                continue
            if line == "data: [DONE]":
                return text, end
            chunk = json.loads(line[6:])
            if "error" in chunk:
                raise AssertionError(str(chunk["error"]))
            for choice in chunk["choices"]:
                text, end = text + choice["text"], choice["finish_reason"] or end
    raise AssertionError("the stream broke off")


def client(server):
    limits = httpx.Limits(max_connections=STREAMS, max_keepalive_connections=STREAMS)
    return httpx.AsyncClient(base_url=server.url, timeout=600, limits=limits, trust_env=False)


async def crowd(server, seconds):
    """Rounds of all streams for so long, and memory once it was filled; one round and no memory for 0 seconds."""
    recipes = [recipe(at) for at in range(STREAMS)]
    async with client(server) as http:
        alone = [await stream(http, body) for body in recipes]
        rng, end, rounds, first = random.Random(0), time.monotonic() + seconds, 0, None
        filled = end - seconds * 2 / 3
        while rounds < (2 * SETTLED if seconds else 1) or time.monotonic() < end:
            order = rng.sample(range(STREAMS), STREAMS)

            async def later(at):
                await asyncio.sleep(rng.random() / 2)
                return at, await stream(http, recipes[at])

            for at, said in await asyncio.gather(*map(later, order)):
                assert said == alone[at], f"request {at} of round {rounds}: {said} and not {alone[at]}: {recipes[at]}"
            rounds += 1
            if first is None and seconds and rounds >= SETTLED and time.monotonic() > filled:
                await asyncio.sleep(IDLE)
                first = server.resident()
        if seconds:
            await asyncio.sleep(IDLE)
    return rounds, first


def concurrent(server, seconds):
    rounds, first = asyncio.run(crowd(server, seconds))
    grown = (server.resident() - first) / first if first else None
    assert grown is None or grown <= GROWTH, f"memory grew by {grown:.1%} from {first} bytes"
    server.settled()
    memory = "" if grown is None else f", memory {grown:+.1%}"
    return f"{rounds} rounds of {STREAMS} streams{memory}"
