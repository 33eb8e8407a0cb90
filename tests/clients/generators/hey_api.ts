// Reads the list by each query, and imports payments, with a client of @hey-api/openapi-ts. See test_generators.py.

import { importPayments, listPayments } from "./generated";
import { client } from "./generated/client.gen";
import { base_url, import_key, key, readLists } from "./read_lists";

client.setConfig({ baseUrl: base_url, auth: () => key });

readLists(
    async (query) => (await listPayments({ query, throwOnError: true })).data,
    async (body) => (await importPayments({ body, auth: () => import_key, throwOnError: true })).data,
);
