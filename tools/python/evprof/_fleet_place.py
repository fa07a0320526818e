"""Where the traces of a fleet are: a folder, or an S3-compatible store. For _fleet_source.py. A store needs pyarrow.

The C library reads files, so a task fetches a trace of a store first. Each process of Spark's workers keeps the last one: the parts of
a large trace are tasks that follow each other. Its file has no name, so nothing is left where a worker is killed.
"""
import errno
import os
import shutil
import tempfile
from typing import IO, Any, Dict, List, NamedTuple, Optional, Tuple

from ._needs import needs
from .errors import EvprofError, EvprofFileError, file_error

_STORES = ("s3://", "s3a://")
_COPY_BYTES = 16 << 20  # of a request


class Found(NamedTuple):
    """A trace. path: below the folder; state: differs when the file is another."""
    path: str
    size: int
    state: str


class Opened(NamedTuple):
    """A file to read. It stays as long as `file` does; None: it has its name."""
    path: str
    file: Optional[IO[bytes]]


def _is_trace(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.endswith(".evp") and not name.startswith(".")


class Folder:
    """A folder of this machine."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def name(self, path: str) -> str:
        """The trace's name in messages."""
        return os.path.join(self._folder, path)

    def found(self) -> List[Found]:
        """All traces below it, in any order."""
        paths = [os.path.join(place, name) for place, _, names in os.walk(self._folder) for name in names if _is_trace(name)]
        return [Found(os.path.relpath(path, self._folder), os.path.getsize(path), "") for path in paths]

    def end(self, path: str, size: int) -> bytes:
        """The last bytes of a trace."""
        with open(self.name(path), "rb") as file:
            file.seek(-min(size, os.path.getsize(file.fileno())), os.SEEK_END)
            return file.read()

    def opened(self, path: str, state: str) -> Opened:
        """The trace as a file."""
        return Opened(self.name(path), None)


def _variable(*names: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def _store_options() -> Dict[str, Any]:
    """What the variables of AWS say, but for keys: pyarrow looks for these itself."""
    endpoint, region = _variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"), _variable("AWS_REGION", "AWS_DEFAULT_REGION")
    options: Dict[str, Any] = {"region": region} if region else {}
    if endpoint:
        scheme, separator, host = endpoint.rstrip("/").partition("://")
        if not separator or scheme not in ("http", "https") or not host or "@" in host:
            raise EvprofError("evprof: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL is not http://HOST:PORT or https://HOST")
        options.update(scheme=scheme, endpoint_override=host)
    return options


# Of this process: the trace fetched last, and what it is.
_kept: Dict[Tuple[str, str, str], IO[bytes]] = {}


class Store:
    """A bucket, or what is below a prefix of it."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._root = self._url.partition("://")[2]
        if not self._root:
            raise EvprofError("evprof: %s: there is no bucket" % url)
        self._fs = needs("pyarrow.fs", "a store", "pyarrow")
        self._files = self._fs.S3FileSystem(**_store_options())

    def name(self, path: str) -> str:
        """The trace's name in messages."""
        return "%s/%s" % (self._url, path) if path else self._url

    def _failed(self, path: str, error: OSError) -> EvprofFileError:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return file_error(error.errno or errno.EIO, "evprof: %s: %s" % (self.name(path), reason), self.name(path))

    def found(self) -> List[Found]:
        """All traces below it, in any order."""
        try:
            infos = self._files.get_file_info(self._fs.FileSelector(self._root, recursive=True, allow_not_found=True))
        except OSError as error:
            raise self._failed("", error) from error
        return [Found(info.path[len(self._root) + 1:], info.size, "%s %s" % (info.mtime_ns, info.size)) for info in infos
                if info.type == self._fs.FileType.File and _is_trace(info.path)]

    def end(self, path: str, size: int) -> bytes:
        """The last bytes of a trace."""
        try:
            with self._files.open_input_file("%s/%s" % (self._root, path)) as file:
                file.seek(max(0, file.size() - size))
                return bytes(file.read())
        except OSError as error:
            raise self._failed(path, error) from error

    def opened(self, path: str, state: str) -> Opened:
        """The trace as a file. Fetches it, unless it was the last that was fetched."""
        key = (self._url, path, state)
        if key not in _kept:
            _kept.clear()  # first: there is room for one
            _kept[key] = self._fetched(path)
        return Opened("/proc/self/fd/%d" % _kept[key].fileno(), _kept[key])

    def _fetched(self, path: str) -> IO[bytes]:
        file = tempfile.TemporaryFile(prefix="evprof-")
        try:
            with self._files.open_input_stream("%s/%s" % (self._root, path)) as source:
                shutil.copyfileobj(source, file, _COPY_BYTES)
            file.flush()
        except OSError as error:
            file.close()
            raise self._failed(path, error) from error
        return file


def place_of(folder: str) -> Any:
    """The Folder or Store. EvprofError: it is neither."""
    if folder.startswith(_STORES):
        return Store(folder)
    if "://" in folder:
        raise EvprofError("evprof: %s: a fleet reads folders, s3:// and s3a://; mount another store, or copy the traces" % folder)
    return Folder(folder)
