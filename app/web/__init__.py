"""The HTTP side: API, pages, problem details, security. No torch here, and no SQL."""
