"""zstd from whichever of three places has it. Used by reading.py."""


def _of_module_zstandard():
    import zstandard

    def unpack(stored, raw_bytes):
        return zstandard.ZstdDecompressor().decompress(bytes(stored), max_output_size=raw_bytes)
    return unpack, zstandard.ZstdError


def _of_standard_library():
    from compression import zstd

    def unpack(stored, raw_bytes):
        return zstd.ZstdDecompressor().decompress(stored, max_length=raw_bytes + 1)
    return unpack, zstd.ZstdError


def _of_c_library():
    import ctypes
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    library.ZSTD_isError.argtypes = [ctypes.c_size_t]

    def unpack(stored, raw_bytes):
        raw = bytearray(raw_bytes)
        to = (ctypes.c_char * raw_bytes).from_buffer(raw)
        written = library.ZSTD_decompress(ctypes.addressof(to), raw_bytes, bytes(stored), len(stored))
        if library.ZSTD_isError(written):
            raise ValueError("no zstd frame")
        return memoryview(raw)[:written]
    return unpack, ValueError


def _find():
    for place in (_of_standard_library, _of_module_zstandard, _of_c_library):
        try:
            return place()
        except (ImportError, OSError, AttributeError):
            pass
    return None, ValueError


_unpack, _error = _find()


def unpack(stored, raw_bytes):
    """The raw_bytes bytes of a zstd frame, or None where it is damaged."""
    if _unpack is None:
        raise ImportError("evprof: traces are packed with zstd, which this Python lacks: install the package "
                          "zstandard or the library libzstd.so.1")
    if not raw_bytes:
        return b""
    try:
        raw = _unpack(stored, raw_bytes)
    except (_error, EOFError):
        return None
    return raw if len(raw) == raw_bytes else None
