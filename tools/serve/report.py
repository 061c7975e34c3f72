"""What was checked and what came of it, as a table."""

import time
import traceback


class Report:
    def __init__(self):
        self.rows = []

    def check(self, name, run, *arguments):
        """Runs a check; what it gives is shown beside its name."""
        began = time.monotonic()
        try:
            said, good = run(*arguments), True
        except Exception as error:  # whatever a client or the server says is a finding
            traceback.print_exc()
            said, good = f"{type(error).__name__}: {error}".splitlines()[0], False
        self.add(name, good, "" if said is None else said, time.monotonic() - began)

    def add(self, name, good, said, seconds):
        """A row of what was checked elsewhere."""
        self.rows.append((name, good, str(said), seconds))
        print(f"{'ok    ' if good else 'FAILED'} {name}: {said}", flush=True)

    def table(self):
        """Prints all rows; the exit code."""
        width = max((len(name) for name, *_ in self.rows), default=0)
        print()
        for name, good, said, seconds in self.rows:
            print(f"{name:{width}}  {'ok' if good else 'FAILED':6}  {seconds:7.1f} s  {said[:100]}")
        failed = sum(not good for _, good, *_ in self.rows)
        print(f"\n{len(self.rows)} checks, {failed} failed")
        return 1 if failed or not self.rows else 0
