"""Walk the list with the client of a payment provider, which accepts any base address and follows `next`."""

import sys

from mollie.api.client import Client

base_url, key = sys.argv[1:]

client = Client(api_endpoint=base_url)
client.set_api_key(key)

page = client.payments.list(limit=100)
while True:
    for payment in page:
        print(payment.id)
    if not page.has_next():
        break
    page = page.get_next()
