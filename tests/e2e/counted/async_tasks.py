"""asyncio without clocks: tasks, queues, locks, asynchronous generators, cancellation and exceptions."""
import asyncio


class Resource:
    async def __aenter__(self):
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *details):
        await asyncio.sleep(0)
        return False


async def countdown(n):
    while n:
        yield n
        n -= 1
        await asyncio.sleep(0)


async def producer(queue, n):
    async for item in countdown(n):
        await queue.put(item)
    await queue.put(None)


async def consumer(queue, got):
    while True:
        item = await queue.get()
        if item is None:
            return
        got.append(item)


async def failing(depth):
    if depth:
        return await failing(depth - 1)
    await asyncio.sleep(0)
    raise ValueError("deep")


async def forever():
    try:
        while True:
            await asyncio.sleep(0)
    except asyncio.CancelledError:
        raise


async def locked(lock, log):
    async with lock:
        log.append(1)
        await asyncio.sleep(0)


async def everything():
    queue, got, log = asyncio.Queue(maxsize=2), [], []
    await asyncio.gather(producer(queue, 20), consumer(queue, got))
    results = await asyncio.gather(failing(5), failing(0), return_exceptions=True)
    lock = asyncio.Lock()
    await asyncio.gather(*[locked(lock, log) for _ in range(10)])
    task = asyncio.ensure_future(forever())
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        pass
    async with Resource():
        squares = [i * i async for i in countdown(10)]
    return len(got), len(results), len(log), sum(squares)


def main():
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(everything())
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
