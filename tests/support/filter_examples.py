"""The example of each filter in the API's reference, as query parameters."""

from payments.filters import FILTERS


def example_parameters(name: str) -> dict[str, str]:
    """Return the example of a filter."""
    example = FILTERS[name].example
    if isinstance(example, dict):
        return {f"{name}[{key}]": value for key, value in example.items()}
    parameters = {name: ",".join(example) if isinstance(example, list) else str(example)}
    return parameters | ({"currency": "EUR"} if name.startswith("amount") else {})
