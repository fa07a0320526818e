"""zip, tar and gzip archives in memory, CSV, property lists, paths and temporary files."""
import bz2
import csv
import fnmatch
import glob
import gzip
import io
import os
import pathlib
import plistlib
import shutil
import tarfile
import tempfile
import zipfile


def zipped():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(4):
            archive.writestr(zipfile.ZipInfo("folder/%d.txt" % n, (2020, 1, 1, 0, 0, 0)), "text %d" % n * 50)
    with zipfile.ZipFile(out) as archive:
        return archive.testzip(), [archive.read(name) for name in archive.namelist()], "missing" in archive.namelist()


def tarred():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
        for n in range(3):
            info = tarfile.TarInfo("member%d" % n)
            info.size = 10 * n
            archive.addfile(info, io.BytesIO(b"x" * info.size))
    out.seek(0)
    with tarfile.open(fileobj=out) as archive:
        return [(member.name, archive.extractfile(member).read()) for member in archive]


def tables():
    out = io.StringIO()
    writer = csv.DictWriter(out, ["name", "count"])
    writer.writeheader()
    for n in range(8):
        writer.writerow({"name": "a,%d" % n, "count": n})
    out.seek(0)
    rows = list(csv.DictReader(out))
    return rows, csv.Sniffer().sniff("a;b;c\n1;2;3\n").delimiter


def compressed():
    data = b"some text " * 100
    with gzip.open(io.BytesIO(gzip.compress(data)), "rt") as file:
        lines = list(file)
    return len(lines), bz2.decompress(bz2.compress(data)) == data, plistlib.loads(plistlib.dumps({"a": [1, {"b": b"c"}]}))


def files():
    folder = pathlib.Path(tempfile.gettempdir(), "evprof-counted-%d" % os.getpid())
    folder.mkdir()
    try:
        for n in range(3):
            (folder / ("%d.txt" % n)).write_text("line\n" * n)
        (folder / "inner").mkdir()
        shutil.copy(str(folder / "2.txt"), str(folder / "inner"))
        names = sorted(path.name for path in folder.glob("**/*.txt"))
        found = sorted(os.path.basename(name) for name in glob.glob(str(folder / "*.txt")))
        walked = [sorted(files) for _, _, files in os.walk(str(folder))]
        return names, found, fnmatch.filter(names, "[01].*"), walked, (folder / "2.txt").read_text().splitlines()
    finally:
        shutil.rmtree(str(folder))


def main():
    return zipped(), tarred(), tables(), compressed(), files()
