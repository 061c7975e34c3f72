"""OpenAI's own tests of its Python library, from the library's source distribution, on a server of ours.

The library's makers run them against a server made of their description. Those of the endpoints that this server has are
run here: what they send has to be taken, and what comes back has to be of the library's types. A test that asks for what no
right server gives (a response that was never made, conversations that are kept elsewhere) is listed with its reason; a test
that is listed and passes is a failure too, so that the list stays true."""

import os
import re
import subprocess
import sys
import tarfile
import xml.etree.ElementTree
from collections import Counter
from pathlib import Path

FILES = ["chat/test_completions.py", "test_completions.py", "test_embeddings.py", "test_models.py", "test_responses.py",
         "responses/test_input_items.py", "responses/test_input_tokens.py"]
REQUIREMENTS = ["pytest>=9", "pytest-asyncio>=1.3", "rich>=13"]

# What tests want that no right server gives, by file and test. Ids are searched in `file::test`, and with how the client
# was made behind it: `file::test[strict]`.
WRONG = [
    (r"chat/test_completions.*_(retrieve|update|delete|list)(_with_all_params)?$",
     "conversations are kept by the interface of responses alone"),
    (r"test_models.*_delete$", "models are not deleted over HTTP"),
    (r"test_responses.*_(retrieve|delete|cancel)(_with_all_params)?(_overload_\d)?$", "no response of that id was made"),
    (r"test_input_items.*_list(_with_all_params)?$", "no response of that id was made"),
    (r"test_responses.*_compact(_with_all_params)?$", "conversations are not shortened"),
    (r"test_responses.*_create_with_all_params_overload_\d$",
     "goes on from a response that was never made, and has a conversation beside it"),
    (r"test_(responses|input_tokens).*_(create|count)(_overload_\d)?$", "asks nothing: neither a model nor an input"),
    (r"test_input_tokens.*_with_all_params$", "goes on from a response that was never made"),
    (r"test_embeddings.*_create\[(strict|aiohttp)\]$",
     "the library asks for base64 by itself, and its strict check of the answer wants numbers"),
    (r"^test_completions.*_create_with_all_params_overload_1$",
     "asks for `echo` with log-probabilities, where the first token has none: OpenAI's own servers say null, the types a number"),
]
# Tests that send nothing to a server: the library refuses an empty id by itself.
EMPTY = re.compile("path_params")


def sources(folder):
    """The tests of the library that is installed here."""
    import openai

    place = folder / f"openai-{openai.__version__}"
    if not place.exists():
        words = ["download", "--quiet", "--no-deps", "--no-binary", "openai", "--dest", folder]
        subprocess.run([sys.executable, "-m", "pip", *words, f"openai=={openai.__version__}"], check=True)
        with tarfile.open(next(folder.glob(f"openai-{openai.__version__}.tar.gz"))) as packed:
            packed.extractall(folder, filter="data")
    return place


def names(place):
    """The models that the tests ask for: those that are to give vectors, and all others."""
    def of(files):
        texts = [(place / "tests/api_resources" / file).read_text() for file in files]
        found = [re.findall(r'model="([^"]+)"|retrieve\(\s*"(gpt[^"]+)"', text) for text in texts]
        return {name or other for one in found for name, other in one}

    vectors = of(["test_embeddings.py"])
    return sorted(vectors), sorted(of(FILES) - vectors)


def results(place, url, work):
    """How each test ended: its id, and what failed."""
    report = work / "openai-suite.xml"
    options = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", place, "-o", "asyncio_mode=auto",
               "-o", "asyncio_default_fixture_loop_scope=session", "-o", "junit_logging=no", f"--junitxml={report}"]
    subprocess.run([sys.executable, "-m", "pytest", *options, *(f"tests/api_resources/{file}" for file in FILES)],
                   cwd=place, env=environment(url), stdout=(work / "openai-suite.log").open("w"), timeout=1800)
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        failed = next((case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None), None)
        name = case.get("classname").removeprefix("tests.api_resources.").replace(".", "/")
        file, kind = name.rsplit("/", 1)
        yield f"{file}.py::{kind}::{case.get('name')}", None if failed is None else failed.get("message", "")


def environment(url):
    return os.environ | {"TEST_API_BASE_URL": f"{url}/v1", "OPENAI_LOG": "", "PYTHONPATH": "."}


def wrong(test):
    """Why a test is wrong; none where it is not."""
    plain = test.split("[")[0]
    return next((why for pattern, why in WRONG if re.search(pattern, plain) or re.search(pattern, test)), None)


def suite(yirage, made, work):
    """Runs them; what is said of them."""
    from server import Server

    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "openai[aiohttp]", *REQUIREMENTS], check=True)
    tests = work / "openai-tests"
    tests.mkdir(exist_ok=True)
    place = sources(tests)
    vectors, others = names(place)
    aliases = [f"{name}={made['fill']}" for name in others] + [f"{name}={made['embed']}" for name in vectors]
    more = [word for alias in aliases for word in ("--served-model-name", alias)]
    with Server(yirage, {"fill": made["fill"], "embed": made["embed"]}, work, *more) as server:
        ended = list(results(place, server.url, work))
    sent = [(test, failed) for test, failed in ended if not EMPTY.search(test)]
    faults = [f"{test}: {failed[:300]}" for test, failed in sent if failed is not None and not wrong(test)]
    stale = [f"{test} passes and is listed as wrong" for test, failed in sent if failed is None and wrong(test)]
    faults += stale
    reasons = Counter(wrong(test) for test, failed in sent if failed is not None)
    (work / "openai-suite.txt").write_text("\n".join(faults + [f"{n} x {why}" for why, n in reasons.items()]) + "\n")
    assert len(sent) > 100, f"{len(sent)} tests were run; {work / 'openai-suite.log'} says why"
    assert not faults, f"{len(faults)} of {len(sent)}: {faults[0]} ... all in {work / 'openai-suite.txt'}"
    passed = sum(failed is None for _, failed in sent)
    return f"{passed} of {len(sent)} pass; {len(sent) - passed} are wrong: {dict(reasons)}"
