"""XML by two libraries, HTML, and configuration files."""
import configparser
import html.parser
import io
import xml.dom.minidom
import xml.etree.ElementTree as ElementTree
import xml.sax.saxutils

ITEM = '<item id="%d" name="n%d">text &amp; %d<b/></item>'
TEXT = "<root>" + "".join(ITEM % (i, i, i) for i in range(60)) + "</root>"


class Links(html.parser.HTMLParser):
    def __init__(self):
        html.parser.HTMLParser.__init__(self)
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.found.append(data.strip())


def elements():
    root = ElementTree.fromstring(TEXT)
    for item in root.iter("item"):
        item.set("new", item.get("name", "") + "x")
    found = root.findall("./item[@id='7']/b")
    return len(ElementTree.tostring(root)), len(found)


def documents():
    document = xml.dom.minidom.parseString(TEXT)
    for node in document.getElementsByTagName("item"):
        node.setAttribute("x", xml.sax.saxutils.escape(node.getAttribute("name") + "<>"))
    return len(document.toprettyxml())


def links():
    parser = Links()
    parser.feed("<html><body>" + "".join('<a href="/%d">link &lt;%d</a><br>' % (i, i) for i in range(50)) + "</body>")
    parser.close()
    return len(parser.found)


def configuration():
    parser = configparser.ConfigParser()
    parser.read_string("".join("[s%d]\na = %d\nb = %%(a)s/x\n  more\n# no\n" % (i, i) for i in range(20)))
    values = [parser.get(section, "b") for section in parser.sections()]
    parser.write(io.StringIO())
    return len(values), parser.getint("s3", "a")


def main():
    return elements(), documents(), links(), configuration()
