#!/usr/bin/env python3
"""Makes a disk image from which a PC's BIOS starts Linux: a boot sector (boot.S) and a kernel with its first file
system behind it, placed as the kernel's documentation of its x86 boot protocol says.

usage: disk.py BOOT.S KERNEL INITRD COMMAND_LINE DISK
"""

import pathlib
import struct
import subprocess
import sys
import tempfile

SECTOR = 512
TRACK = 16 * 63 * SECTOR  # images are whole cylinders of 16 heads and 63 sectors
SETUP, COMMAND_LINE, INITRD = 0x90000, 0x9E000, 0x8000000  # addresses; boot.S has the first and the last too


def padded(data: bytes, to: int) -> bytes:
    return data + bytes(-len(data) % to)


def patched_setup(kernel: bytes, initrd: bytes, command_line: str) -> tuple[bytes, bytes]:
    """The kernel's real-mode part with the loader's fields filled in and the command line behind it, and the rest."""
    if kernel[0x202:0x206] != b"HdrS" or struct.unpack_from("<H", kernel, 0x206)[0] < 0x20A:
        sys.exit("this is no Linux kernel for x86 of the last fifteen years")
    size = ((kernel[0x1F1] or 4) + 1) * SECTOR
    setup = bytearray(kernel[:size])
    setup[0x210] = 0xFF  # a loader without a number
    setup[0x211] |= 0x80  # there is a heap, which ends here:
    struct.pack_into("<H", setup, 0x224, COMMAND_LINE - SETUP - 0x200)
    struct.pack_into("<II", setup, 0x218, INITRD, len(initrd))
    struct.pack_into("<I", setup, 0x228, COMMAND_LINE)
    line = command_line.encode() + b"\0"
    if len(line) > SECTOR:
        sys.exit(f"a command line of {len(line)} bytes does not fit into {SECTOR}")
    return bytes(setup).ljust(COMMAND_LINE - SETUP, b"\0") + line, kernel[size:]


def boot_sector(source: str, parts: dict[str, bytes]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        code, sector = f"{folder}/boot.o", pathlib.Path(f"{folder}/boot.bin")
        symbols = [f"--defsym={name}_SECTORS={len(data) // SECTOR}" for name, data in parts.items()]
        subprocess.run(["as", "--32", *symbols, "-o", code, source], check=True)
        subprocess.run(["ld", "-m", "elf_i386", "-Ttext=0x7c00", "--oformat=binary", "-o", sector, code], check=True)
        return sector.read_bytes()


def main() -> None:
    source, kernel, initrd, command_line, disk = sys.argv[1:]
    initrd_bytes = pathlib.Path(initrd).read_bytes()
    setup, rest = patched_setup(pathlib.Path(kernel).read_bytes(), initrd_bytes, command_line)
    parts = {"SETUP": setup, "KERNEL": rest, "INITRD": initrd_bytes}
    parts = {name: padded(data, SECTOR) for name, data in parts.items()}
    image = boot_sector(source, parts) + b"".join(parts.values())
    pathlib.Path(disk).write_bytes(padded(image, TRACK))


main()
