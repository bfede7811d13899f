"""What is looked at in a log's file before Inspect reads it.

Inspect reads the parts of a log whole, whatever they unpack to, and does not compare checksums. A log
is not trusted: a few kilobytes that unpack to gigabytes, or bytes that have changed, are refused here.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from harness_noise.errors import InputError

LARGEST_JSON = 1 << 29
"""Bytes of a `.json` log, which has to be read whole; an `.eval` log may be of any size."""
FLOOR = 1 << 25
HEADER_RATIO = 20
"""The header, the reductions and the summaries may unpack to FLOOR plus so many times the file's size; in
real logs they are smaller than the file."""
SAMPLES_RATIO = 200
"""The same for all samples, which repeat themselves: their conversations compress far better."""
_HEADER = frozenset(("header.json", "reductions.json", "summaries.json", "_journal/start.json"))
_JOURNAL = "_journal/summaries/"
_PIECE = 1 << 16
_ZSTANDARD = 93


def check_header(path: Path) -> None:
    """Refuse a log whose header, reductions and summaries are not what they say, or out of proportion.

    Raises:
        InputError: with the reason.
        OSError: the file cannot be read.
    """
    if path.suffix != ".eval":
        if path.stat().st_size > LARGEST_JSON:
            raise InputError(
                f"{path}: a JSON log of {path.stat().st_size / 1e9:.1f} GB has to be held in memory as a whole; make "
                f"an .eval log of it: `inspect log convert {path} --to eval --output-dir DIR --stream`"
            )
        _check_depth(path)
        return
    members = _members(path)
    names = {item.filename for item in members}
    if "summaries.json" not in names:
        # Inspect counts the summaries of an unfinished log by the highest number among their names
        numbers = [name.removeprefix(_JOURNAL).removesuffix(".json") for name in names if name.startswith(_JOURNAL)]
        if any(not number.isdecimal() or len(number) > 9 or int(number) > len(members) for number in numbers):
            raise InputError(f"{path}: not a log of Inspect: its summaries are numbered as no run numbers them")
    wanted = (item for item in members if item.filename in _HEADER or item.filename.startswith("_journal/"))
    _check(path, wanted, HEADER_RATIO)


def _check_depth(path: Path) -> None:
    """Refuse JSON that is nested without end: what streams the header remembers the way to every place in it."""
    from pydantic_core import from_json

    try:
        from_json(path.read_bytes())
    except ValueError as error:
        raise _damaged(path, str(error)) from None


def check_samples(path: Path) -> None:
    """Refuse a log whose samples are not what they say, or out of proportion; see `check_header`."""
    if path.suffix == ".eval":
        _check(path, (item for item in _members(path) if item.filename.startswith("samples/")), SAMPLES_RATIO)


def _members(path: Path) -> list[zipfile.ZipInfo]:
    """The archive's list of members, where it can be read in one way only."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members, start = archive.infolist(), archive.start_dir
            if archive.comment or not _one_list(file, start):
                raise InputError(f"{path}: not an archive as Inspect writes it: its list of members is ambiguous")
    except InputError:
        raise
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
        raise _damaged(path, str(error)) from None
    if any(item.orig_filename != item.filename for item in members):
        raise InputError(f"{path}: not an archive as Inspect writes it: the name of a member has a null byte")
    return members


def _one_list(file: BinaryIO, start: int) -> bool:
    """Whether the archive's last records name the one list at `start`, for readers look for it in several ways."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - 98))
    tail = file.read().rjust(98, b"\0")
    length, offset = struct.unpack("<II", tail[-10:-2])
    if tail[56:60] == b"PK\x06\x07":
        long_length, long_offset = struct.unpack("<QQ", tail[40:56])
        same = {length: long_length, offset: long_offset}
        place = int.from_bytes(tail[64:72], "little")
        return (
            tail[:4] == b"PK\x06\x06"
            and (place, long_offset, start + long_length) == (size - 98, start, size - 98)
            and all(short in (0xFFFFFFFF, long) for short, long in same.items())
        )
    return tail[-22:-18] == b"PK\x05\x06" and (offset, start + length) == (start, size - 22)


def _check(path: Path, members: Iterable[zipfile.ZipInfo], ratio: int) -> None:
    size = path.stat().st_size
    left = most = FLOOR + ratio * size
    with path.open("rb") as file:
        for item in members:
            crc, length = 0, 0
            try:
                for piece in _unpacked(file, item):
                    crc, length = zlib.crc32(piece, crc), length + len(piece)
                    left -= len(piece)
                    if left < 0:
                        raise InputError(
                            f"{path}: {item.filename} unpacks to more than {most / 1e6:.0f} MB, though the file has "
                            f"{size / 1e6:.1f} MB: no run writes such a log. If you trust it, make a JSON log of it: "
                            f"`inspect log convert {path} --to json --output-dir DIR`"
                        )
            except InputError:
                raise
            except (zlib.error, struct.error, ValueError, EOFError) as error:
                raise _damaged(path, f"{item.filename}: {error}") from None
            if (crc, length) != (item.CRC, item.file_size):
                raise _damaged(path, f"{item.filename} is not what its checksum says")


def _unpacked(file: BinaryIO, item: zipfile.ZipInfo) -> Iterator[bytes]:
    """A member's content in pieces, taken from where Inspect takes it, to its end and not to its declared one."""
    file.seek(item.header_offset)
    fields = struct.unpack("<4sHHHHHIIIHH", file.read(30))
    if fields[0] != b"PK\x03\x04" or fields[2] & 1:
        raise ValueError("encrypted, or not where the archive says")
    file.seek(item.header_offset + 30 + fields[9] + fields[10])
    packed = _packed(file, item.compress_size)
    if item.compress_type == zipfile.ZIP_STORED:
        yield from packed
    elif item.compress_type == zipfile.ZIP_DEFLATED:
        stream = zlib.decompressobj(-15)
        for data in packed:
            while data and not stream.eof:
                yield stream.decompress(data, _PIECE)
                data = stream.unconsumed_tail
        yield stream.flush()
        if not stream.eof:
            raise EOFError("its data end too early")
    elif item.compress_type == _ZSTANDARD:
        import zstandard

        whole = io.BytesIO(b"".join(packed))
        try:
            with zstandard.ZstdDecompressor().stream_reader(whole, read_across_frames=True) as reader:
                yield from iter(lambda: reader.read(_PIECE), b"")
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None
    else:
        raise ValueError(f"packed by method {item.compress_type}")


def _packed(file: BinaryIO, length: int) -> Iterator[bytes]:
    while length:
        data = file.read(min(_PIECE, length))
        if not data:
            raise EOFError("the file ends in it")
        length -= len(data)
        yield data


def _damaged(path: Path, why: str) -> InputError:
    return InputError(
        f"{path}: not an Inspect log that can be read ({why}); if it was cut short, copy it again or try "
        "`inspect log recover`"
    )
