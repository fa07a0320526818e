"""What workers of a prefork server run, for test_services.c: a WSGI application and a task of celery, which call leaf() ten times and
answer with their pid. Celery's messages and results are files in the working directory.
"""
import os


def leaf():
    return sum(range(50))


def work():
    for _ in range(10):
        leaf()
    return os.getpid()


def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(work()).encode()]


def make_celery():
    from celery import Celery
    folders = {name: os.path.abspath(os.path.join("queue", name)) for name in ("messages", "done", "control", "results")}
    for folder in folders.values():
        os.makedirs(folder, exist_ok=True)
    made = Celery("preforked", broker="filesystem://", backend="file://" + folders["results"])
    made.conf.broker_transport_options = {"data_folder_in": folders["messages"], "data_folder_out": folders["messages"],
                                          "processed_folder": folders["done"], "control_folder": folders["control"]}
    made.task(work, name="work")
    return made


if "CELERY" in os.environ:
    app = make_celery()
