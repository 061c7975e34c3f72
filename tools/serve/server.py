"""A server of ours for as long as a test needs it."""

import json
import os
import signal
import subprocess
import time
import urllib.request

OURS = ("YIRAGE_", "HF_", "OPENAI_", "ANTHROPIC_", "OLLAMA_")


def environment(nowhere):
    """The environment without settings of the user's own, and without proxies."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(OURS) and not name.lower().endswith("_proxy")}
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HF_HOME"):
        kept[name] = str(nowhere)
    return kept | {"HF_HUB_OFFLINE": "1", "YIRAGE_WEIGHT_CACHE": "off"}


class Server:
    """`yirage serve` of these models, by name."""

    def __init__(self, program, models, work, *more, preload=None):
        names = [word for name, path in models.items() for word in ("--served-model-name", f"{name}={path}")]
        if len(models) == 1:
            names = ["--served-model-name", next(iter(models))]
        words = [program, "serve", *map(str, models.values()), *names, "--port", "0", "--json", "--threads", "2", *more]
        self.log = open(work / "server.log", "ab")
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log,
                                        env=environment(work / "nowhere") | ({"LD_PRELOAD": preload} if preload else {}))
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server did not start; {work / 'server.log'} says why: {' '.join(words)}")
        self.url = json.loads(line)["address"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.code = self.process.wait()
        self.log.close()

    def alive(self):
        return self.process.poll() is None

    def resident(self):
        """Bytes of memory that it takes."""
        with open(f"/proc/{self.process.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def ask(self, path, body=None):
        """The JSON that a path answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"content-type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=600) as response:
            return json.loads(response.read())

    def open_requests(self):
        return self.ask("/health/progress")["open"]

    def settled(self, seconds=30):
        """Waits until no request is open."""
        end = time.monotonic() + seconds
        while self.open_requests():
            if time.monotonic() > end:
                raise AssertionError(f"a request is still open after {seconds} s")
            time.sleep(0.05)
