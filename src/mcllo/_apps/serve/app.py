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
from .choices import error_sentence, read_form_options
from .guard import REPORT_POLICY, RequestGuard
from .jobs import JobRegistry, TableJob, recalibrated_file_name
from .limits import LIMITS, ServerLimits
from .pages import PageRenderer, render_script, render_stylesheet
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
    folder: Path, port: int, limits: ServerLimits = LIMITS, token: str = ""
) -> RequestGuard:
    """Return the application for a port, with its guard; `folder` is private."""
    served = RequestHandlers(folder, limits)
    guard = RequestGuard(served.build_starlette(), port, token)
    served.pages = PageRenderer(guard.root_path, limits)
    return guard


class RequestHandlers:
    """What the addresses do."""

    pages: PageRenderer

    def __init__(self, folder: Path, limits: ServerLimits) -> None:
        self.limits = limits
        self.jobs = JobRegistry(folder, limits)

    def build_starlette(self) -> Any:
        """Return the application without its guard."""
        routes = [
            Route("/", self.show_start_page),
            Route("/page.css", partial(_text_response, render_stylesheet, "text/css")),
            Route(
                "/page.js", partial(_text_response, render_script, "text/javascript")
            ),
            Route("/upload", self.receive_upload, methods=["POST"]),
            Route("/job/{key}", self.show_job),
            Route("/job/{key}/columns", self.show_columns_form),
            Route("/job/{key}/status", self.get_task_status),
            Route("/job/{key}/see/{what}", self.show_report),
            Route("/job/{key}/get/{what}", self.download_file),
            Route("/job/{key}/sheet", self.choose_sheet, methods=["POST"]),
            Route("/job/{key}/assess", self.start_assessment, methods=["POST"]),
            Route("/job/{key}/compare", self.start_comparison, methods=["POST"]),
            Route("/job/{key}/recalibrate", self.start_recalibration, methods=["POST"]),
            Route("/job/{key}/cancel", self.cancel_task, methods=["POST"]),
            Route("/job/{key}/forget", self.remove_table, methods=["POST"]),
        ]
        return Starlette(
            routes=routes,
            lifespan=self.lifespan,
            exception_handlers={HTTPException: self.show_error_page},
        )

    @asynccontextmanager
    async def lifespan(self, _: Any) -> AsyncIterator[None]:
        """End all work with the application."""
        yield
        await self.jobs.cancel_all_tasks()

    async def show_start_page(self, _: Request) -> Response:
        """Show the first page."""
        return HTMLResponse(self.pages.render_start_page())

    async def receive_upload(self, request: Request) -> Response:
        """Take a file."""
        key, folder = self.jobs.make_job_folder()
        content_type = request.headers.get("content-type", "")
        try:
            name = await receive_file(
                request.stream(), content_type, folder, self.limits
            )
        except MclloError as error:
            shutil.rmtree(folder, ignore_errors=True)
            return HTMLResponse(
                self.pages.render_start_page(error_sentence(error)), status_code=400
            )
        except BaseException:  # the browser went away
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return self._redirect_to_job(self.jobs.add_job(key, folder, name))

    async def show_job(self, request: Request) -> Response:
        """Show what a job is at."""
        job = self._find_requested_job(request)
        if job.task_run is not None:
            return HTMLResponse(self.pages.render_progress(job))
        # What cannot be read as a table is gone at once: there is nothing to be done with it.
        if job.detected is None:
            problem = job.problem or job.notice
            self.jobs.remove_job(job)
            return HTMLResponse(self.pages.render_start_page(problem))
        if "assess" in job.results:
            return HTMLResponse(self.pages.render_result(job))
        return HTMLResponse(self.pages.render_columns_form(job))

    async def show_columns_form(self, request: Request) -> Response:
        """Show the form, also when there is a result."""
        job = self._find_requested_job(request)
        if job.task_run is not None or job.detected is None:
            return self._redirect_to_job(job)
        return HTMLResponse(self.pages.render_columns_form(job))

    async def choose_sheet(self, request: Request) -> Response:
        """Look at another sheet."""
        job = self._find_requested_job(request)
        fields = await _read_form_fields(request)
        if job.detected is not None and fields.get("sheet") in job.detected.sheets:
            self.jobs.start_detection(job, fields["sheet"])
        return self._redirect_to_job(job)

    async def start_assessment(self, request: Request) -> Response:
        """Assess the table as the form says."""
        job = self._find_requested_job(request)
        fields = await _read_form_fields(request)
        if job.detected is None or job.task_run is not None:
            return self._redirect_to_job(job)
        job.fields = {"normalize": "", **fields}
        job.delete_results("assess", "compare", "recalibrate")
        try:
            job.reading = read_form_options(job.detected, job.fields, self.limits)
        except MclloError as error:
            job.problem = error_sentence(error)
            job.notice = ""
            return self._redirect_to_job(job)
        self.jobs.start_task(
            job, "assess", {"file": job.file, "reading_options": job.reading}
        )
        return self._redirect_to_job(job)

    async def start_comparison(self, request: Request) -> Response:
        """Compare recalibrations."""
        job = self._find_requested_job(request)
        if "assess" in job.results:
            self.jobs.start_task(
                job, "compare", {"file": job.file, "reading_options": job.reading}
            )
        return self._redirect_to_job(job)

    async def start_recalibration(self, request: Request) -> Response:
        """Learn a recalibration and apply it."""
        job = self._find_requested_job(request)
        fields = await _read_form_fields(request)
        if (
            "assess" in job.results
            and job.detected is not None
            and job.task_run is None
        ):
            job.delete_results("recalibrate")
            given = {
                "file": job.file,
                "reading_options": job.reading,
                "method": fields.get("method", "auto"),
                "output_name": recalibrated_file_name(job.detected),
            }
            self.jobs.start_task(job, "recalibrate", given)
        return self._redirect_to_job(job)

    async def cancel_task(self, request: Request) -> Response:
        """End what runs."""
        job = self._find_requested_job(request)
        work = job.task_run
        self.jobs.cancel_task(job)
        # The page that follows must not find the killed process still at work.
        if work is not None and work.waiter is not None and job.task_run is not None:
            await work.waiter
        return self._redirect_to_job(job)

    async def remove_table(self, request: Request) -> Response:
        """Remove a table."""
        self.jobs.remove_job(self._find_requested_job(request))
        return RedirectResponse(f"{self.pages.root}/", status_code=303)

    async def get_task_status(self, request: Request) -> Response:
        """Say what is being done."""
        work = self._find_requested_job(request).task_run
        if work is None:
            return JSONResponse({"busy": False})
        return JSONResponse(
            {"busy": True, "doing": work.doing, "seconds": work.elapsed_seconds}
        )

    async def show_report(self, request: Request) -> Response:
        """Show a report, in its sandbox."""
        what = request.path_params["what"]
        path = (
            self._find_requested_job(request).result_path(what)
            if what in VIEWED_PAGES
            else None
        )
        if path is None:
            raise HTTPException(404)
        headers = {
            "content-security-policy": REPORT_POLICY,
            # a browser shows nothing of a sandbox that asks for a group of its own
            "cross-origin-opener-policy": "unsafe-none",
        }
        return FileResponse(path, media_type="text/html", headers=headers)

    async def download_file(self, request: Request) -> Response:
        """Give a file to keep."""
        path = self._find_requested_job(request).result_path(
            request.path_params["what"]
        )
        if path is None:
            raise HTTPException(404)
        headers = {
            "content-disposition": f'attachment; filename="{path.name}"'
        }  # a name of ours
        return FileResponse(
            path, media_type="application/octet-stream", headers=headers
        )

    async def show_error_page(self, _: Request, error: Any) -> Response:
        """Show that there is nothing."""
        words = TABLE_GONE if error.status_code == 404 else "This cannot be asked here."
        return HTMLResponse(
            self.pages.render_problem("Nothing here", words), error.status_code
        )

    def _find_requested_job(self, request: Request) -> TableJob:
        job = self.jobs.find_job(request.path_params["key"])
        if job is None:
            raise HTTPException(404)
        return job

    def _redirect_to_job(self, job: TableJob) -> Response:
        return RedirectResponse(f"{self.pages.root}/job/{job.key}", status_code=303)


async def _text_response(render: Any, media_type: str, _: Request) -> Response:
    return Response(render(), media_type=media_type)


async def _read_form_fields(request: Request) -> dict[str, str]:
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
