"""/openapi.json by schemathesis: bodies that it promises to take and bodies that it promises to refuse."""

import json
import subprocess
import sys
from pathlib import Path

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
]
# The model that answers at a path, where it is not the one that tells stories.
MODELS = {
    "/v1/embeddings": "embed",
    "/api/embed": "embed",
    "/api/embeddings": "embed",
    "/v1/rerank": "score",
    "/v1/score": "score",
}
# Its model goes while others use it, which is tried elsewhere.
LEFT_OUT = ["/models/unload"]


def narrowed(document):
    """The document with names of models that there are: of the others hardly more than a 404 would be seen."""
    for path in LEFT_OUT:
        document["paths"].pop(path)
    for path, methods in document["paths"].items():
        for operation in methods.values():
            body = operation.get("requestBody")
            if body is None:
                continue
            schema = body["content"]["application/json"]["schema"]
            # A body that is a list names no model.
            for form in (form for form in schema.get("anyOf", [schema]) if "properties" in form):
                name = "model" if "model" in form["properties"] else "name"
                form["properties"][name] = {"const": MODELS.get(path, "story")}
                form["required"] = sorted({*form["required"], name})
    return document


def conforms(server, work, examples, seed=1):
    document = narrowed(server.ask("/openapi.json"))
    file = work / "openapi.json"
    file.write_text(json.dumps(document))
    program = Path(sys.executable).with_name("schemathesis")
    words = [program, "run", file, "--url", server.url, "--checks", ",".join(CHECKS), "--mode", "all",
             "--phases", "coverage,fuzzing", "--max-examples", str(examples), "--seed", str(seed),
             "--request-timeout", "120", "--generation-database", "none", "--no-color"]
    log = work / "schemathesis.log"
    with open(log, "w") as out:
        ended = subprocess.run([str(word) for word in words], stdout=out, stderr=subprocess.STDOUT, cwd=work)
    said = log.read_text().splitlines()
    assert server.alive(), "the server has ended"
    assert ended.returncode == 0, "\n".join(said[-200:])
    return f"{len(document['paths'])} paths; {said[-1].strip('= ') if said else ''}"
