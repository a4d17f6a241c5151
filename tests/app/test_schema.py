"""Whatever fits the document of the interface, and whatever does not, is answered without a server error."""

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

import attnscope
from attnscope.app import Desk
from attnscope.app.server import build

desk = Desk({"demo": attnscope.load("demo")}, budget=20_000_000)
desk.close = lambda: None  # every request here begins the service and ends it: the desk is to outlive that
service = build(desk, upload_bytes=1_000_000)
schema = schemathesis.openapi.from_asgi("/openapi.json", service)


@schema.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_request_makes_the_server_fail(case):
    case.call_and_validate(checks=[not_a_server_error, status_code_conformance, content_type_conformance])
