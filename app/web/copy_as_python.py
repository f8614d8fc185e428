"""Every number of an answer as a few lines of Python that fetch it again, or read it from the exported file.

The lines use the standard library, and numpy for arrays. They name this server's usual address; a page puts its own in
its place.
"""

from urllib.parse import urlencode

ORIGIN = "http://127.0.0.1:8000"


def fetch_lines(path: str, parameters: dict[str, object], *more: str) -> str:
    """Lines that leave the answer of an address in `answer`, followed by `more`.

    Parameters that are None are left out, as a page leaves them out.
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    url = path + ("?" + urlencode(given) if given else "")
    lines = [
        "import json, urllib.request",
        f'origin = "{ORIGIN}"',
        f'answer = json.load(urllib.request.urlopen(origin + "{url}"))',
        *more,
    ]
    return "\n".join(lines) + "\n"


def array_lines(path: str, parameters: dict[str, object], *more: str) -> str:
    """As `fetch_lines`, with a function `array` that turns a typed array of the answer into one of numpy."""
    decode = (
        "import base64, numpy as np",
        "def array(typed):",
        '    shape = [int(size) for size in typed["shape"].split(",")]',
        '    return np.frombuffer(base64.b64decode(typed["bdata"]), "<" + typed["dtype"]).reshape(shape)',
    )
    return fetch_lines(path, parameters, *decode, *more)


def file_lines(name: str, indices: dict[str, int]) -> str:
    """Lines that read one number, or one slice, of a tensor from the exported .npz file."""
    where = ", ".join(str(index) for index in indices.values())
    about = ", ".join(indices)
    return f'import numpy as np\nprint(np.load("headwater.npz")["{name}"][{where}])  # {about}\n'
