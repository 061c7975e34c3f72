"""A case's files on disk, and off it again."""
import os
import shutil
import socket
import stat

from case import Closed, Fifo, Folder, Link, Socket


def fill(folder, files):
    """Makes `folder` with `files` in it."""
    (folder / ".home").mkdir(parents=True, exist_ok=True)
    for name, what in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        put(path, what)


def put(path, what):
    match what:
        case bytes():
            path.write_bytes(what)
        case Link(target):
            path.symlink_to(target)
        case Fifo():
            os.mkfifo(path)
        case Socket():
            listen(path)
        case Folder(None):
            path.mkdir(exist_ok=True)
        case Folder(source):
            shutil.copytree(source, path, symlinks=True, dirs_exist_ok=True)
        case Closed(data):
            path.write_bytes(data)
            path.chmod(0)


def listen(path):
    """Binds a socket; by its name alone, since paths of sockets are short."""
    server = socket.socket(socket.AF_UNIX)
    place = os.open(path.parent, os.O_DIRECTORY)
    try:
        server.bind(f"/proc/self/fd/{place}/{path.name}")
    finally:
        os.close(place)
        server.close()


def clear(folder):
    """Removes `folder`, whatever a case made of it."""
    if not folder.exists():
        return
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if not os.path.islink(path):
                os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
    shutil.rmtree(folder)
