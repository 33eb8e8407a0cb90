"""Follow the change feed with halchemy, from the links at `/` or from a `later` link. Print IDs, then the next link."""

import sys

from halchemy import Api

base_url, key, *later = sys.argv[1:]

api = Api(base_url, headers={"Authorization": f"Bearer {key}"})

page = api.using_endpoint(later[0]).get() if later else api.follow(api.using_endpoint("/").get()).to("changes").get()
while True:
    for payment in page.embedded("payments"):
        print(payment["id"])
    if not page.has_rel("next"):
        break
    page = api.follow(page).to("next").get()
print(page["_links"]["later"]["href"])
