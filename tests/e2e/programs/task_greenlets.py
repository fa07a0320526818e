"""Two asyncio tasks whose steps switch to another greenlet and back within a span, as SQLAlchemy's do, before a span inside it."""
import asyncio
import time

import evprof
import greenlet


def rests(caller):
    while True:
        time.sleep(0.001)
        caller.switch()


async def work():
    other = greenlet.greenlet(rests)
    for _ in range(3):
        with evprof.span("a"):
            other.switch(greenlet.getcurrent())
            with evprof.span("b"):
                time.sleep(0.001)
            await asyncio.sleep(0)


async def both():
    await asyncio.gather(work(), work())


loop = asyncio.new_event_loop()
loop.run_until_complete(both())
loop.close()
