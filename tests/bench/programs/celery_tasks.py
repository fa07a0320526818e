"""celery_tasks.py TASKS: a worker of celery that runs that many tasks, in a thread of the program that sends them."""
import sys

from celery import Celery, group
from celery.contrib.testing.worker import start_worker

app = Celery("bench", broker="memory://", backend="cache+memory://")
app.conf.update(worker_hijack_root_logger=False, broker_connection_retry_on_startup=True,
                broker_transport_options={"polling_interval": 0.001})


@app.task
def add(a, b):
    return a + b


@app.task
def words(text):
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return counts


def main(tasks):
    with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=30):
        for number in range(0, tasks, 10):
            job = group([add.s(number, one) for one in range(8)] + [words.s("one two two three three three")] * 2)
            results = job.apply_async().get(timeout=60, interval=0.002)
            assert results[:8] == [number + one for one in range(8)] and results[8]["three"] == 3


main(int(sys.argv[1]))
