"""The WSGI application in the process of the tests."""

from django.db import connections

from payments.runtime.process import process
from payments.runtime.sessions import Session
from payments.service.handler import Handler


def application() -> Handler:
    """Return the application. It uses the connections of this thread, which can have open transactions."""
    handler = Handler()
    session = Session(handler.sessions)
    session.connections = {alias: connections[alias] for alias in connections}
    session.deadline = process.deadlines.database
    handler.sessions.idle.append(session)
    return handler
