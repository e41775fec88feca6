"""The yardstick: an extender that does nothing, in the same framework as ours.

FastAPI, uvicorn with uvloop and httptools, raw request, orjson, all names back with score 0. What
our extender costs beyond this is the price of deciding.
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
    """Say that we serve."""
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
