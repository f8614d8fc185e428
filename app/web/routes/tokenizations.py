"""POST tokenizations: tokens only, for counting while somebody types."""

from anyio import to_thread
from fastapi import APIRouter
from starlette.responses import Response

from app.web.arrays import ExactJSON
from app.web.prompts import check_characters, token_json
from app.web.routes.problem_docs import problems
from app.web.schemas import TokenizationBody, TokenizationRequest
from app.web.services import Counted, With

router = APIRouter(tags=["tokenizations"], dependencies=[Counted])


@router.post(
    "/tokenizations",
    responses={
        200: {"model": TokenizationBody},
        **problems(400, 404, 413, 422, 429, 503),
    },
    response_class=ExactJSON,
)
async def tokenize(body: TokenizationRequest, services: With) -> Response:
    """The tokens of a text as the model would be given them, and whether there are too many.

    No more tokens than the limit are listed. An empty text has none, except where the tokenizer adds some.
    """
    loaded = await services.desk.model(body.model)
    check_characters(body.text)

    def split() -> ExactJSON:
        tokens = loaded.encode(body.text)
        return ExactJSON(
            {
                "model": loaded.id,
                "n_tokens": len(tokens),
                "limit": loaded.max_tokens,
                "over_limit": len(tokens) > loaded.max_tokens,
                "tokens": [token_json(token) for token in tokens[: loaded.max_tokens]],
            }
        )

    return await to_thread.run_sync(split)
