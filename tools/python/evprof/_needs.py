"""Packages that are imported when they are needed."""
import importlib
from typing import Any, Optional


def needs(package: str, what: str, install: Optional[str] = None) -> Any:
    """The package. Raises ImportError, which names what needs it and how to install it. install: pip's name, where it is another."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        raise ImportError("evprof: %s needs the package %s, which this Python cannot import (%s): python -m pip install %s"
                          % (what, name, error, install or name), name=name) from error
