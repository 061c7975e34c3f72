#!/usr/bin/env python3
"""Drives the server's page in Chromium, as its users do: talk, reload, stop, see an error, by keyboard alone.

    pip install playwright; apt install chromium
    yirage serve MODEL --port 8080 &          # a model with a chat template
    tools/page/drive.py --url http://127.0.0.1:8080/ [--screens FOLDER] [--axe axe.min.js]

tools/serve/clients.py --only page does all of it. What a hostile model would say is put in the place of the server's answer, so that what is checked is the page. Exit code 1
names what failed. With --axe (of the npm package axe-core) each view has to be free of violations.
"""

import argparse
import json
import os
import sys

from playwright.sync_api import expect, sync_playwright

HOSTILE = """# A heading <script>alert(1)</script>

<img src=x onerror="window.broken = true"> and **bold** with `code <b>`.

- one
- two
  1. inner

| a | b |
|---|---|
| 1 | <i>2</i> |

```python
print("<script>window.broken = true</script>")
```

[good](https://example.org/a) [bad](javascript:window.broken=true) [data](data:text/html,x)

> quoted *text*
"""


def stream(text):
    """An answer of the server with this text."""
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    events = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    usage = {"prompt_tokens": 9, "completion_tokens": len(pieces), "prompt_tokens_details": {"cached_tokens": 4}}
    events.append({"choices": [], "usage": usage})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


# Means and estimated quantiles of histograms at random. What is compared: a share 1 - q of all values is no less than the
# quantile, and a share q no more, so mean >= (1 - q) * quantile; and where all values are in one bucket both ends of it bind.
QUANTILES = """async () => {
    const { histogram } = await import("/page/metrics.js");
    const bounds = [0.001, 0.01, 0.1, 1];
    let seed = 7;
    const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
    const wrong = [];
    for (let round = 0; round < 500; round++) {
        const centre = 10 ** (-5 + 5 * random());
        const values = Array.from({ length: 1 + Math.floor(20 * random()) }, () => centre * (1 + random() * (round % 3)));
        const all = values.reduce((a, b) => a + b, 0);
        const samples = [...bounds, Infinity].map((bound) => ({
            name: "x_bucket", labels: { le: bound === Infinity ? "+Inf" : String(bound) },
            value: values.filter((value) => value <= bound).length,
        }));
        samples.push({ name: "x_sum", labels: {}, value: all }, { name: "x_count", labels: {}, value: values.length });
        const { mean, quantile } = histogram(samples, "x");
        const found = [0.5, 0.95, 0.99].map(quantile);
        const low = Math.max(0, ...bounds.filter((bound) => values.every((value) => value > bound)));
        const fits = found.every((at, index) => {
            const q = [0.5, 0.95, 0.99][index];
            return at * (1 - q) + low * q <= mean * (1 + 1e-9) && (index === 0 || at >= found[index - 1] * (1 - 1e-9));
        });
        // One value is its own mean, and the lesser of two no more than theirs.
        const few = values.length > 2 || found[0] <= mean * (1 + 1e-9);
        const one = values.length > 1 || found.every((at) => Math.abs(at - mean) <= mean * 1e-9);
        if (!fits || !few || !one) wrong.push({ mean, found, values });
    }
    return wrong;
}"""


class Drive:
    def __init__(self, page, options):
        self.page, self.options = page, options

    def look(self, name):
        if self.options.screens:
            os.makedirs(self.options.screens, exist_ok=True)
            self.page.screenshot(path=os.path.join(self.options.screens, f"{name}.png"))
        if self.options.axe:
            self.page.evaluate(open(self.options.axe).read())
            found = self.page.evaluate("axe.run()")["violations"]
            assert not found, [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]

    def answered(self, count):
        expect(self.page.locator(".message.assistant")).to_have_count(count, timeout=60_000)
        expect(self.page.locator("#status")).to_have_text("The answer is complete.", timeout=60_000)

    def talk(self):
        page = self.page
        page.goto(self.options.url)
        expect(page.locator("#model option")).not_to_have_count(0)
        self.look("empty")
        page.locator("#open-settings").click()
        page.locator("#set-max_tokens").fill("40")
        page.locator("#set-temperature").fill("0")
        self.look("settings")
        page.keyboard.press("Escape")
        page.locator("#prompt").fill("Once upon a time")
        page.keyboard.press("Enter")
        self.answered(1)
        assert "tokens/s" in page.locator(".figures").inner_text()
        self.look("answer")

    def reload(self):
        page = self.page
        before = page.locator("#messages").inner_text()
        page.reload()
        expect(page.locator(".message")).to_have_count(2)
        assert page.locator("#messages").inner_text() == before
        expect(page.locator("#conversations li")).to_have_count(1)

    def again(self):
        before = self.page.locator(".message.assistant .text").inner_text()
        self.page.locator("#retry").click()
        self.answered(1)
        # The same text, since the temperature is 0.
        assert self.page.locator(".message.assistant .text").inner_text() == before

    def stop(self):
        """An answer that never ends by itself is stopped by a key."""
        page = self.page
        page.evaluate("""() => {
            const real = window.fetch;
            window.fetch = (path, options) => {
                if (!String(path).includes("completions")) return real(path, options);
                const said = new TextEncoder().encode('data: {"choices":[{"delta":{"content":"and on "}}]}\\n\\n');
                const body = new ReadableStream({
                    async pull(to) { await new Promise((then) => setTimeout(then, 20)); to.enqueue(said); },
                    start(to) {
                        options.signal.addEventListener("abort", () => to.error(new DOMException("", "AbortError")));
                    },
                });
                return Promise.resolve(new Response(body));
            };
        }""")
        page.locator("#prompt").fill("Tell me everything")
        page.keyboard.press("Enter")
        expect(page.locator(".message.assistant").last).to_contain_text("and on and on")
        page.keyboard.press("Escape")
        expect(page.locator("#status")).to_have_text("The answer was stopped.")
        expect(page.locator("#stop")).to_be_disabled()
        page.reload()
        expect(page.locator(".message.assistant").last).to_contain_text("and on")

    def error(self):
        page = self.page
        body = json.dumps({"error": {"message": "the queue is full"}})
        page.route("**/v1/chat/completions", lambda route: route.fulfill(status=429, body=body))
        page.locator("#prompt").fill("Hello?")
        page.keyboard.press("Enter")
        expect(page.locator("#error")).to_have_text("the queue is full")
        # The question stays, and can be asked again.
        expect(page.locator(".message").last).to_contain_text("Hello?")
        page.unroute("**/v1/chat/completions")
        self.look("error")

    def hostile(self):
        page = self.page
        page.locator("#new-conversation").click()
        answer = {"status": 200, "headers": {"content-type": "text/event-stream"}, "body": stream(HOSTILE)}
        page.route("**/v1/chat/completions", lambda route: route.fulfill(**answer))
        page.locator("#prompt").fill("<b>me</b>")
        page.keyboard.press("Enter")
        self.answered(1)
        page.unroute("**/v1/chat/completions")
        text = page.locator(".message.assistant .text")
        assert page.evaluate("window.broken") is None
        assert page.locator("#messages img, #messages script, #messages i, #messages b").count() == 0
        assert [a.get_attribute("href") for a in text.locator("a").all()] == ["https://example.org/a"]
        counts = {name: text.locator(name).count() for name in ("h4", "strong", "ul", "ol", "table", "blockquote em")}
        assert counts == {"h4": 1, "strong": 1, "ul": 1, "ol": 1, "table": 1, "blockquote em": 1}, counts
        expect(text.locator("pre code")).to_have_text('print("<script>window.broken = true</script>")')
        self.look("markdown")

    def keyboard(self):
        """All that can be done can be reached by Tab, and its focus is seen."""
        page = self.page
        page.reload()
        page.locator("body").focus()
        page.evaluate("document.activeElement.blur()")
        reached = set()
        for _ in range(40):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
        wanted = {"skip", "to-chat", "to-engine", "model", "open-settings", "new-conversation", "messages", "prompt", "send"}
        assert wanted <= reached, wanted - reached

    def engine(self):
        page = self.page
        page.locator("#to-engine").click()
        expect(page.locator("#figures dd")).to_have_count(9)
        expect(page.locator("#latencies tr")).to_have_count(6)
        assert page.locator("#latencies td").first.inner_text() != "0"
        page.wait_for_timeout(2500)
        self.look("engine")
        page.locator("#to-chat").click()
        expect(page.locator("#chat")).to_be_visible()

    def quantiles(self):
        """No figure contradicts another: values are drawn, counted in buckets, and estimated from them."""
        wrong = self.page.evaluate(QUANTILES)
        assert not wrong, wrong[:3]

    def room(self):
        """On a small screen two thirds of the height are for messages."""
        size = self.page.viewport_size
        if min(size["width"], size["height"]) > 500:
            return
        share = self.page.locator("#messages").bounding_box()["height"] / size["height"]
        assert share >= 2 / 3, f"{share:.3f} of {size}"
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"the page is {wide} pixels wider than the screen"
        self.look("room")

    def delete(self):
        page = self.page
        page.locator("#open-settings").click()
        page.locator("#delete-all").click()
        page.keyboard.press("Escape")
        expect(page.locator("#conversations li")).to_have_count(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://127.0.0.1:8080/")
    parser.add_argument("--browser", default="/usr/bin/chromium", help="program of the browser")
    parser.add_argument("--screens", help="folder for pictures of each view")
    parser.add_argument("--axe", help="axe.min.js, to look for what keeps people out")
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.browser, args=["--no-sandbox"])
        for scheme, size in [("light", (1280, 800)), ("dark", (1280, 800)), ("light", (390, 844)), ("dark", (360, 640))]:
            viewport = {"width": size[0], "height": size[1]}
            page = browser.new_page(color_scheme=scheme, viewport=viewport)
            said = []
            page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: said.append(str(error)))
            under = os.path.join(options.screens, f"{scheme}-{size[0]}") if options.screens else None
            drive = Drive(page, argparse.Namespace(url=options.url, screens=under, axe=options.axe))
            steps = [drive.talk, drive.room, drive.reload, drive.again, drive.stop, drive.error, drive.hostile]
            for step in [*steps, drive.keyboard, drive.engine, drive.quantiles, drive.delete]:
                step()
                print(f"{scheme} {size[0]}: {step.__name__}")
            # What the browser says of the refusal that was asked for is no fault of the page.
            faults = [text for text in said if "429" not in text]
            assert not faults, faults
            page.close()
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
