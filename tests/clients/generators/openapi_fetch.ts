// Reads the list by each query with openapi-fetch and types of openapi-typescript. See test_generators.py.

import createClient from "openapi-fetch";
import type { paths } from "./generated";
import { base_url, key, readLists } from "./read_lists";

const client = createClient<paths>({ baseUrl: base_url, headers: { Authorization: `Bearer ${key}` } });

readLists(async (query) => {
    const { data, error } = await client.GET("/v2/payments", { params: { query } });
    if (!data) throw new Error(error.detail);
    return data;
});
