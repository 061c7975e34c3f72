"""What one hostile run is: files, a command, and which ends of it are right."""
from dataclasses import dataclass, field

# How a run can end. `same`: exit 0 with what the unharmed model says; `other`: exit 0 with anything else; `error`: an
# exit code that the manual lists, with a message.
SAME, OTHER, ERROR = "same", "other", "error"
# What a mutation may lead to. A change that the file may legitimately make leads anywhere but into a crash.
ANYTHING = frozenset([SAME, OTHER, ERROR])
REFUSED = frozenset([ERROR])
UNCHANGED = frozenset([SAME])
UNCHANGED_OR_REFUSED = frozenset([SAME, ERROR])


@dataclass
class Link:
    """A symbolic link in place of a file."""
    target: str


@dataclass
class Fifo:
    """A named pipe that nobody writes to."""


@dataclass
class Socket:
    """A socket that nobody answers."""


@dataclass
class Folder:
    """A folder where a file should be; `source` is copied into it."""
    source: str | None = None


@dataclass
class Closed:
    """A file that may not be read."""
    data: bytes = b""


@dataclass
class Case:
    """One run. It starts in a folder of its own that holds `files`; arguments name them without a folder."""
    what: str
    args: list
    files: dict = field(default_factory=dict)
    allow: frozenset = ANYTHING
    # Arguments of the unharmed run that tells what `same` is; needed where `other` is not allowed.
    like: list | None = None
    # Which keys of the answer are compared; without them, the whole standard output.
    keys: tuple = ("tokens", "text")
    env: dict = field(default_factory=dict)
    stdin: bytes = b""
    # Shell text around the command, where `"$@"` stands for it: limits, redirections.
    shell: str | None = None
    # Called with (folder, Running) while the program runs.
    during: object = None
    # What a message of an error has to say.
    says: str = ""
    # Whether nothing can be said, because standard error leads nowhere.
    mute: bool = False
    # Whether `inspect --json` has to find an error, where it is none itself: what `run` refuses.
    finds: bool = False


def inspect(what, model, files, allow):
    """A look at a damaged model: it finds whatever `run` would refuse."""
    refused = allow == REFUSED
    args = ["inspect", "--model", model, *(["--json"] if refused else [])]
    return Case(f"inspect {what}", args, files, finds=refused)


@dataclass
class Family:
    """A kind of hostility: how many runs the whole trial has of it, and the run of a number."""
    name: str
    count: int
    # make(rng, base, work) -> Case; `base` is the folder of unharmed models, `work` one of the family's own.
    make: object
    # prepare(base, work, run) makes what all runs share, where there is such a thing.
    prepare: object = None
