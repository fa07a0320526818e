"""lxml: a document of XML as a tree, searched, transformed and written; scale: thousands of elements."""


def main(scale):
    from lxml import etree

    text = b"<list>" + b"".join(b'<item id="%d"><name>name %d</name><of>text &amp; more</of></item>' % (n, n)
                                for n in range(scale * 1000)) + b"</list>"
    tree = etree.fromstring(text)
    names = tree.xpath("//item[@id mod 2 = 0]/name/text()")
    for item in tree.iter("item"):
        item.set("seen", "yes")
    assert len(names) == scale * 500 and len(etree.tostring(tree)) > len(text)
