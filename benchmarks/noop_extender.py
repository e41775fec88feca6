"""The reference for throughput: an extender that does nothing, in the same framework as ours.

It uses FastAPI, uvicorn with uvloop and httptools, the raw request and orjson. It returns all names
with score 0. The extra cost of our extender is the cost of its decisions.
"""

import sys

import orjson
import uvicorn
from fastapi import FastAPI, Request, Response

app = FastAPI(openapi_url=None)


@app.post("/prioritize")
async def prioritize(request: Request) -> Response:
    """Give every node the score 0."""
    names = orjson.loads(await request.body())["NodeNames"]
    reply = orjson.dumps([{"Host": name, "Score": 0} for name in names])
    return Response(reply, media_type="application/json")


@app.get("/readyz")
async def ready() -> Response:
    """Return that the server is ready."""
    return Response("ok")


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )
