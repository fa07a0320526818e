"""Messages made, printed and parsed again."""
import email
import email.header
import email.mime.multipart
import email.mime.text
import email.policy
import email.utils


def build(n):
    message = email.mime.multipart.MIMEMultipart(boundary="=====boundary%d" % n)
    message["From"] = email.utils.formataddr(("Jos\u00e9", "jose@example.com"))
    message["To"] = ", ".join("user%d@example.com" % i for i in range(5))
    message["Subject"] = email.header.Header("\u00fcber %d" % n, "utf-8")
    message["Date"] = "Mon, 01 Jan 2024 00:00:00 +0000"
    message.attach(email.mime.text.MIMEText("plain text\n" * 10))
    message.attach(email.mime.text.MIMEText("<b>\u00fc</b>" * 10, "html", "utf-8"))
    return message.as_string()


def read(text):
    message = email.message_from_string(text)
    parts = [part.get_payload(decode=True) for part in message.walk() if not part.is_multipart()]
    modern = email.message_from_string(text, policy=email.policy.default)
    addresses = [address.addr_spec for address in modern["To"].addresses]
    return len(parts), str(modern["Subject"]), addresses, email.utils.parsedate_tz(message["Date"])


def main():
    return [read(build(n)) for n in range(3)]
