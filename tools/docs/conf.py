"""The site, for Sphinx: `make docs` (site.sh) puts the sources beside this file's copy."""
import os
import sys

sys.path.insert(0, os.environ["EVPROF_SITE_PACKAGE"])

project = "evprof"
author = "The evprof authors"
release = os.environ["EVPROF_SITE_VERSION"]
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = "evprof " + release
html_copy_source = False
html_show_copyright = False
myst_heading_anchors = 3
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types of packages that are not installed here
autodoc_mock_imports = ["numpy", "pandas", "polars", "pyarrow", "matplotlib"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
suppress_warnings = ["misc.highlighting_failure"]  # a block of an output is no program
