"""Functions whose names and files hold whatever a string can hold."""
import threading


def template():
    pass


def called(name, file="names.py"):
    code = template.__code__
    fields = {"co_name": name, "co_filename": file}
    if hasattr(code, "co_qualname"):
        fields["co_qualname"] = name
    template.__code__ = code.replace(**fields)
    template()
    template.__code__ = code


def in_thread():
    called("inside")


for text in ('quo"te', "new\nline", "back\\slash", "\u00fcml\u00e4ut", "\U0001f600", "a" * 5000,
             "lone \udc80 surrogate",
             "\x01control\x1b[31m", "",
             "nul\x00inside", "</script>", "a" * 20000 + "\u00fc", "%s%n{}", "\u2028\ufeff"):
    called(text)
    called("file", text)
exec(compile("def from_exec():\n    pass\nfrom_exec()", "<a \"file\"\n\udcff>", "exec"))
for name in ('a "thread"', "new\nline", "\u00fc" * 300, "\udc81", ""):
    thread = threading.Thread(target=in_thread, name=name)
    thread.start()
    thread.join()
