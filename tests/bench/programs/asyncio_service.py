"""asyncio_service.py REQUESTS: a service of asyncio that answers that many requests of ten clients over TCP, with a timeout and a queue."""
import asyncio
import json
import sys

CLIENTS = 10


async def answer(reader, writer, work):
    while line := await reader.readline():
        done = asyncio.get_running_loop().create_future()
        await work.put((json.loads(line), done))
        writer.write(json.dumps(await asyncio.wait_for(done, 10)).encode() + b"\n")
        await writer.drain()
    writer.close()


async def serve(work):
    while True:
        request, done = await work.get()
        done.set_result({"id": request["id"], "total": sum(item["price"] * item["count"] for item in request["items"])})


async def ask(port, requests):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in range(requests):
        items = [{"price": price, "count": number % 7} for price in range(20)]
        writer.write(json.dumps({"id": number, "items": items}).encode() + b"\n")
        assert json.loads(await reader.readline()) == {"id": number, "total": 190 * (number % 7)}
    writer.close()


async def main(requests):
    work = asyncio.Queue()
    workers = [asyncio.create_task(serve(work)) for _ in range(3)]
    server = await asyncio.start_server(lambda reader, writer: answer(reader, writer, work), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*[ask(port, requests // CLIENTS) for _ in range(CLIENTS)])
    for worker in workers:
        worker.cancel()
    server.close()


asyncio.run(main(int(sys.argv[1])))
