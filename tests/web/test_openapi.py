"""The description of the API is true: generated requests get described answers, and never a server error."""

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance
from starlette.testclient import TestClient

from tests.web.conftest import finished

EXAMPLES = 15
# That a prompt is not blank, or that a head exists, depends on more than the form of a request.
NOT_IN_A_SCHEMA = [positive_data_acceptance]


def test_generated_requests_get_answers_as_described(client: TestClient) -> None:
    analysis_id = finished(client)["id"]
    schema = schemathesis.openapi.from_asgi("/openapi.json", client.app)
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) >= 10
    seen: set[tuple[str, int]] = set()
    for operation in operations:

        @given(case=operation.as_strategy())
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def check(case: schemathesis.Case) -> None:
            # Half of the requests go to an analysis that is there.
            if "analysis_id" in case.path_parameters and len(str(case.path_parameters["analysis_id"])) % 2:
                case.path_parameters["analysis_id"] = analysis_id
            answer = case.call()
            seen.add((case.operation.label, answer.status_code))
            # readyz may say 503; everything else that fails here is a defect.
            assert answer.status_code < 500 or case.operation.path == "/readyz", answer.text
            # A generated path can hold a slash, and then names another route or none.
            if answer.status_code not in (404, 405):
                case.validate_response(answer, excluded_checks=NOT_IN_A_SCHEMA)

        check()
    statuses = {status for _, status in seen}
    assert {200, 201, 404, 422} <= statuses


def test_the_page_at_docs_lists_every_operation_and_every_schema(client: TestClient) -> None:
    page = client.get("/docs").text
    document = client.get("/openapi.json").json()
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in page
    for name in document["components"]["schemas"]:
        assert f'id="{name}"' in page
    assert "HTTPValidationError" not in page


def test_every_reference_in_the_description_resolves(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    text = client.get("/openapi.json").text
    names = set(document["components"]["schemas"])
    referred = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert referred <= names
    assert {"ProblemBody", "AnalysisBody", "TensorBody", "ModelsBody"} <= referred
