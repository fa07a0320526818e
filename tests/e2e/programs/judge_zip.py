"""Is a zip of evprof whole, with the sources as they are? `python judge_zip.py ZIP PROGRAM-OF-THE-TRACE`."""
import sys
import zipfile


def main(path, program):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert len(names) == len(set(names)), names
        assert names[0] == "callgrind.out.evprof", names
        for name in names:
            assert not name.startswith("/") and ".." not in name.split("/"), name
        inside = program.lstrip("/")
        assert inside in names, (inside, names)
        assert archive.read(inside) == open(program, "rb").read()
        costs = archive.read(names[0]).decode()
        assert costs.startswith("# callgrind format\n")
        files = [line.split(") ", 1)[1] for line in costs.splitlines() if line.startswith("cfl=") and ") " in line]
        assert inside in files and not [name for name in files if name.startswith("/")], files
        for info in archive.infolist():
            assert info.file_size == len(archive.read(info)), info


main(*sys.argv[1:])
