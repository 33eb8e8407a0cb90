"""Walk the list with halchemy, a HAL client that knows only links and embedded resources."""

import sys

from halchemy import Api

base_url, key = sys.argv[1:]

api = Api(base_url, headers={"Authorization": f"Bearer {key}"})

page = api.using_endpoint("/v2/payments").with_parameters({"limit": 100}).get()
while True:
    for payment in page.embedded("payments"):
        print(payment["id"])
    if not page.has_rel("next"):
        break
    page = api.follow(page).to("next").get()
