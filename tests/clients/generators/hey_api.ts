// Reads the list by each query with a client of @hey-api/openapi-ts. See test_generators.py.

import { listPayments } from "./generated";
import { client } from "./generated/client.gen";
import { base_url, key, readLists } from "./read_lists";

client.setConfig({ baseUrl: base_url, auth: () => key });

readLists(async (query) => (await listPayments({ query, throwOnError: true })).data);
