"""Walk the list with dlt, a data loader that follows the link at a configured path."""

import sys

from dlt.sources.helpers.rest_client import RESTClient
from dlt.sources.helpers.rest_client.auth import BearerTokenAuth
from dlt.sources.helpers.rest_client.paginators import JSONLinkPaginator

base_url, key = sys.argv[1:]

client = RESTClient(
    base_url=base_url,
    auth=BearerTokenAuth(key),
    paginator=JSONLinkPaginator(next_url_path="_links.next.href"),
    data_selector="_embedded.payments",
)
for page in client.paginate("/v2/payments", params={"limit": 100}):
    for payment in page:
        print(payment["id"])
