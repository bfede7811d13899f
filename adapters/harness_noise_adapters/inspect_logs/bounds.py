"""A log's file, looked at before anything in it is believed.

A log is not trusted: a few kilobytes that unpack to gigabytes, or bytes that have changed, are refused
here, in our own reading and before Inspect reads a log to write it again: Inspect reads the parts of a
log whole, whatever they unpack to, and does not compare checksums.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from harness_noise.errors import InputError
from harness_noise.io.paths import LARGEST

FLOOR = 1 << 25
HEADER_RATIO = 20
"""The header, the reductions and the summaries may unpack to FLOOR plus so many times the file's size; in
real logs they are smaller than the file."""
SAMPLES_RATIO = 200
"""The same for all samples, which repeat themselves: their conversations compress far better."""
SAMPLES = "samples/"
JOURNAL = "_journal/summaries/"
_HEADER = frozenset(("header.json", "reductions.json", "summaries.json", "_journal/start.json"))
_PIECE = 1 << 16
_ZSTANDARD = 93


class Archive:
    """The members of an `.eval` log. Each is unpacked within bounds and compared with its checksum.

    Raises:
        InputError: the file is no archive as Inspect writes it; with the reason.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size
        members = _members(path)
        self.members = {item.filename: item for item in members}  # of two of one name the last counts
        self._most = {ratio: FLOOR + ratio * self.size for ratio in (HEADER_RATIO, SAMPLES_RATIO)}
        self._left = dict(self._most)
        self._file: BinaryIO = path.open("rb")
        if "summaries.json" not in self.members:
            # Inspect counts the summaries of an unfinished log by the highest number among their names
            numbers = [name.removeprefix(JOURNAL).removesuffix(".json") for name in self.members if JOURNAL in name]
            if any(not number.isdecimal() or len(number) > 9 or int(number) > len(members) for number in numbers):
                self._file.close()
                raise InputError(f"{path}: not a log of Inspect: its summaries are numbered as no run numbers them")

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def pieces(self, name: str) -> Iterator[bytes]:
        """The content of a member, in pieces; the last one comes only if the checksum is right.

        Raises:
            InputError: the member is damaged, or far larger than any run writes it.
        """
        item = self.members[name]
        ratio = SAMPLES_RATIO if name.startswith(SAMPLES) else HEADER_RATIO
        crc, length = 0, 0
        last = b""
        try:
            for piece in _unpacked(self._file, item):
                crc, length = zlib.crc32(piece, crc), length + len(piece)
                self._left[ratio] -= len(piece)
                if self._left[ratio] < 0:
                    raise InputError(
                        f"{self.path}: {name} unpacks to more than {self._most[ratio] / 1e6:.0f} MB, though the file "
                        f"has {self.size / 1e6:.1f} MB: no run writes such a log. If you trust it, make a JSON log of "
                        f"it: `inspect log convert {self.path} --to json --output-dir DIR`"
                    )
                yield last
                last = piece
        except InputError:
            raise
        except (zlib.error, struct.error, ValueError, EOFError) as error:
            raise damaged(self.path, f"{name}: {error}") from None
        if (crc, length) != (item.CRC, item.file_size):
            raise damaged(self.path, f"{name} is not what its checksum says")
        yield last

    def check(self, names: Iterable[str]) -> None:
        """Unpack members to see whether they can be; their content is thrown away."""
        for name in names:
            for _ in self.pieces(name):
                pass


def check_header(path: Path) -> None:
    """Refuse a log whose header, reductions and summaries are not what they say, before Inspect reads them.

    Raises:
        InputError: with the reason.
        OSError: the file cannot be read.
    """
    if path.suffix == ".eval":
        with Archive(path) as archive:
            archive.check(name for name in archive.members if name in _HEADER or name.startswith("_journal/"))
        return
    if path.stat().st_size > LARGEST:  # an .eval log may be of any size
        raise InputError(
            f"{path}: a JSON log of {path.stat().st_size / 1e9:.1f} GB has to be held in memory as a whole; make "
            f"an .eval log of it: `inspect log convert {path} --to eval --output-dir DIR --stream`"
        )


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
        raise damaged(path, _why_no_zip(path, error)) from None
    if any(item.orig_filename != item.filename for item in members):
        raise InputError(f"{path}: not an archive as Inspect writes it: the name of a member has a null byte")
    return members


def _why_no_zip(path: Path, error: Exception) -> str:
    with path.open("rb") as file:
        start = file.read(4)
    if not start:
        return "the file is empty"
    if start == b"PK\x03\x04":
        return "it begins as a log does, and the list of members at its end is missing: the file was cut short"
    return str(error)


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
        yield from _unpacked_zstd(b"".join(packed))
    else:
        raise ValueError(f"packed by method {item.compress_type}")


def _unpacked_zstd(packed: bytes) -> Iterator[bytes]:
    """In pieces of bounded size, by whichever of two packages is there; Python has it since 3.14."""
    zstd: Any
    try:
        import zstandard as zstd
    except ImportError:
        try:
            from compression import zstd  # type: ignore[import-not-found,no-redef]
        except ImportError:
            raise InputError(
                "the log is packed with Zstandard, which this Python cannot unpack: pip install 'harness-noise[zstd]'"
            ) from None
        failed, reader = zstd.ZstdError, zstd.ZstdFile(io.BytesIO(packed))
    else:
        failed = zstd.ZstdError
        reader = zstd.ZstdDecompressor().stream_reader(io.BytesIO(packed), read_across_frames=True)
    try:
        with reader:
            yield from iter(lambda: reader.read(_PIECE), b"")
    except failed as error:
        raise ValueError(str(error)) from None


def _packed(file: BinaryIO, length: int) -> Iterator[bytes]:
    while length:
        data = file.read(min(_PIECE, length))
        if not data:
            raise EOFError("the file ends in it")
        length -= len(data)
        yield data


def damaged(path: Path, why: str) -> InputError:
    return InputError(
        f"{path}: not an Inspect log that can be read ({why}); if it was cut short, copy it again or try "
        "`inspect log recover`"
    )
