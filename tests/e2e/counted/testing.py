"""unittest with mocks, doctest, traceback, warnings, inspect and a console."""
import code
import contextlib
import doctest
import inspect
import io
import traceback
import types
import unittest
import unittest.mock
import warnings


class Tests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.log = []

    def setUp(self):
        self.addCleanup(self.log.append, "cleaned")

    def test_equal(self):
        self.assertEqual([1, 2], [1, 2])
        with self.subTest("inner"), self.assertRaisesRegex(ValueError, "invalid"):
            int("x")

    def test_fails(self):
        self.assertEqual({"a": 1}, {"a": 2})

    def test_error(self):
        raise KeyError("x")

    @unittest.skip("no reason")
    def test_skipped(self):
        pass

    @unittest.expectedFailure
    def test_expected(self):
        self.assertTrue(False)


def tested():
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Tests).run(result)
    return result.testsRun, len(result.failures), len(result.errors)


def mocked():
    mock = unittest.mock.Mock(side_effect=[1, KeyError("k")])
    mock.method.return_value = 3
    mock("first")
    with contextlib.suppress(KeyError):
        mock("second", key=1)
    mock.assert_any_call("first")
    with unittest.mock.patch.object(types, "FunctionType", 5):
        seen = types.FunctionType
    return mock.method(1), mock.call_count, seen


def documented():
    def example(n):
        """
        >>> n + 1
        4
        >>> 1 / 0
        Traceback (most recent call last):
        ZeroDivisionError: division by zero
        """
    test = doctest.DocTestParser().get_doctest(example.__doc__, {"n": 3}, "example", "file", 0)
    return doctest.DocTestRunner(verbose=False).run(test, out=io.StringIO().write)


def traced():
    def deep(n):
        return deep(n - 1) if n else [][1]
    try:
        deep(8)
    except IndexError as error:
        return traceback.format_exception(type(error), error, error.__traceback__)[-1]


def warned():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.warn("old", DeprecationWarning)
        warnings.warn_explicit("new", UserWarning, "file", 3)
    return [str(one.message) for one in seen]


def inspected():
    signature = inspect.signature(Tests.assertRaises)
    frame = inspect.currentframe()
    return str(signature), frame.f_code.co_name, len(inspect.getmembers(Tests, inspect.isfunction)) > 3, inspect.stack(0)[0][3]


def typed():
    console = code.InteractiveConsole({"x": 2})
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        for line in ("x * 3", "def f():", "    return x", "", "f()", "1/0", "syntax error here"):
            console.push(line)
    return out.getvalue()


def main():
    return tested(), mocked(), documented(), traced(), warned(), inspected(), typed()
