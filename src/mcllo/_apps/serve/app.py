"""The application: which address does what.

==============================  ====================================================================
``GET  /``                      the first page
``POST /upload``                a file -> a job
``GET  /job/KEY``               what the job is at: progress, the form, the result, or a problem
``GET  /job/KEY/columns``       the form again
``POST /job/KEY/sheet``         another sheet of the workbook
``POST /job/KEY/assess``        the form -> the report
``POST /job/KEY/compare``       recalibrations compared
``POST /job/KEY/recalibrate``   a recalibration learned and applied
``POST /job/KEY/cancel``        end what runs
``POST /job/KEY/forget``        remove the table and all that was made of it
``GET  /job/KEY/status``        what is being done, as JSON for the script
``GET  /job/KEY/see/FILE``      a report in its sandbox
``GET  /job/KEY/get/FILE``      a file to keep
==============================  ====================================================================

All addresses begin with the token, and `_apps/serve/guard` has let the request pass. What changes
something answers with a redirection, so that a page can be loaded again without doing it twice.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route

from ...exceptions import MclloError
from .choices import reading_options, sentence
from .guard import REPORT_POLICY, Guard
from .jobs import Job, Jobs, recalibrated_name
from .limits import LIMITS, Limits
from .pages import Pages, script, style
from .upload import receive_file

MAX_FORM_BYTES = 1 << 20
"""Bytes of a form of columns: a round number, ten times what 1,000 columns take."""
MAX_FORM_FIELDS = 5_000
"""Its fields: a round number, above the 1,000 columns that a table may have."""
VIEWED_PAGES = ("report", "recalibrations")
"""Files that a browser shows."""
TABLE_GONE = (
    "This table is no longer here: it was removed, or mcllo serve was started again."
)


def build_app(
    folder: Path, port: int, limits: Limits = LIMITS, token: str = ""
) -> Guard:
    """Return the application for a port, with its guard; `folder` is private."""
    served = Served(folder, limits)
    guard = Guard(served.starlette(), port, token)
    served.pages = Pages(guard.root, limits)
    return guard


class Served:
    """What the addresses do."""

    pages: Pages

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.limits = limits
        self.jobs = Jobs(folder, limits)

    def starlette(self) -> Any:
        """Return the application without its guard."""
        routes = [
            Route("/", self.start),
            Route("/page.css", partial(_text, style, "text/css")),
            Route("/page.js", partial(_text, script, "text/javascript")),
            Route("/upload", self.upload, methods=["POST"]),
            Route("/job/{key}", self.job),
            Route("/job/{key}/columns", self.columns),
            Route("/job/{key}/status", self.status),
            Route("/job/{key}/see/{what}", self.see),
            Route("/job/{key}/get/{what}", self.get),
            Route("/job/{key}/sheet", self.sheet, methods=["POST"]),
            Route("/job/{key}/assess", self.assess, methods=["POST"]),
            Route("/job/{key}/compare", self.compare, methods=["POST"]),
            Route("/job/{key}/recalibrate", self.recalibrate, methods=["POST"]),
            Route("/job/{key}/cancel", self.cancel, methods=["POST"]),
            Route("/job/{key}/forget", self.forget, methods=["POST"]),
        ]
        return Starlette(
            routes=routes,
            lifespan=self.lifespan,
            exception_handlers={HTTPException: self.lost},
        )

    @asynccontextmanager
    async def lifespan(self, _: Any) -> AsyncIterator[None]:
        """End all work with the application."""
        yield
        await self.jobs.close()

    async def start(self, _: Request) -> Response:
        """Show the first page."""
        return HTMLResponse(self.pages.start())

    async def upload(self, request: Request) -> Response:
        """Take a file."""
        key, folder = self.jobs.new_folder()
        content_type = request.headers.get("content-type", "")
        try:
            name = await receive_file(
                request.stream(), content_type, folder, self.limits
            )
        except MclloError as error:
            shutil.rmtree(folder, ignore_errors=True)
            return HTMLResponse(self.pages.start(sentence(error)), status_code=400)
        except BaseException:  # the browser went away
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return self._to(self.jobs.add(key, folder, name))

    async def job(self, request: Request) -> Response:
        """Show what a job is at."""
        job = self._job(request)
        if job.work is not None:
            return HTMLResponse(self.pages.busy(job))
        # What cannot be read as a table is gone at once: there is nothing to be done with it.
        if job.seen is None:
            problem = job.problem or job.notice
            self.jobs.drop(job)
            return HTMLResponse(self.pages.start(problem))
        if "assess" in job.found:
            return HTMLResponse(self.pages.result(job))
        return HTMLResponse(self.pages.columns(job))

    async def columns(self, request: Request) -> Response:
        """Show the form, also when there is a result."""
        job = self._job(request)
        if job.work is not None or job.seen is None:
            return self._to(job)
        return HTMLResponse(self.pages.columns(job))

    async def sheet(self, request: Request) -> Response:
        """Look at another sheet."""
        job = self._job(request)
        fields = await _form(request)
        if job.seen is not None and fields.get("sheet") in job.seen.sheets:
            self.jobs.look(job, fields["sheet"])
        return self._to(job)

    async def assess(self, request: Request) -> Response:
        """Assess the table as the form says."""
        job = self._job(request)
        fields = await _form(request)
        if job.seen is None or job.work is not None:
            return self._to(job)
        job.fields = {"normalize": "", **fields}
        job.forget("assess", "compare", "recalibrate")
        try:
            job.reading = reading_options(job.seen, job.fields, self.limits)
        except MclloError as error:
            job.problem = sentence(error)
            job.notice = ""
            return self._to(job)
        self.jobs.start(job, "assess", {"file": job.file, "reading": job.reading})
        return self._to(job)

    async def compare(self, request: Request) -> Response:
        """Compare recalibrations."""
        job = self._job(request)
        if "assess" in job.found:
            self.jobs.start(job, "compare", {"file": job.file, "reading": job.reading})
        return self._to(job)

    async def recalibrate(self, request: Request) -> Response:
        """Learn a recalibration and apply it."""
        job = self._job(request)
        fields = await _form(request)
        if "assess" in job.found and job.seen is not None and job.work is None:
            job.forget("recalibrate")
            given = {
                "file": job.file,
                "reading": job.reading,
                "method": fields.get("method", "auto"),
                "out": recalibrated_name(job.seen),
            }
            self.jobs.start(job, "recalibrate", given)
        return self._to(job)

    async def cancel(self, request: Request) -> Response:
        """End what runs."""
        job = self._job(request)
        work = job.work
        self.jobs.cancel(job)
        # The page that follows must not find the killed process still at work.
        if work is not None and work.runs is not None and job.work is not None:
            await work.runs
        return self._to(job)

    async def forget(self, request: Request) -> Response:
        """Remove a table."""
        self.jobs.drop(self._job(request))
        return RedirectResponse(f"{self.pages.root}/", status_code=303)

    async def status(self, request: Request) -> Response:
        """Say what is being done."""
        work = self._job(request).work
        if work is None:
            return JSONResponse({"busy": False})
        return JSONResponse(
            {"busy": True, "doing": work.doing, "seconds": work.seconds}
        )

    async def see(self, request: Request) -> Response:
        """Show a report, in its sandbox."""
        what = request.path_params["what"]
        path = self._job(request).path(what) if what in VIEWED_PAGES else None
        if path is None:
            raise HTTPException(404)
        headers = {
            "content-security-policy": REPORT_POLICY,
            # a browser shows nothing of a sandbox that asks for a group of its own
            "cross-origin-opener-policy": "unsafe-none",
        }
        return FileResponse(path, media_type="text/html", headers=headers)

    async def get(self, request: Request) -> Response:
        """Give a file to keep."""
        path = self._job(request).path(request.path_params["what"])
        if path is None:
            raise HTTPException(404)
        headers = {
            "content-disposition": f'attachment; filename="{path.name}"'
        }  # a name of ours
        return FileResponse(
            path, media_type="application/octet-stream", headers=headers
        )

    async def lost(self, _: Request, error: Any) -> Response:
        """Show that there is nothing."""
        words = TABLE_GONE if error.status_code == 404 else "This cannot be asked here."
        return HTMLResponse(
            self.pages.problem("Nothing here", words), error.status_code
        )

    def _job(self, request: Request) -> Job:
        job = self.jobs.get(request.path_params["key"])
        if job is None:
            raise HTTPException(404)
        return job

    def _to(self, job: Job) -> Response:
        return RedirectResponse(f"{self.pages.root}/job/{job.key}", status_code=303)


async def _text(make: Any, kind: str, _: Request) -> Response:
    return Response(make(), media_type=kind)


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form, which is no file and not long.

    Starlette's ``request.form()`` bounds each field but not all of them together.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise HTTPException(413)
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS
        )
    except ValueError:
        raise HTTPException(400) from None
    return dict(pairs)
