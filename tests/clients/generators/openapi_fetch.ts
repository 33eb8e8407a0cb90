// Reads the list by each query, and imports payments, with openapi-fetch and types of openapi-typescript. See test_generators.py.

import createClient from "openapi-fetch";
import type { paths } from "./generated";
import { base_url, import_key, key, readLists } from "./read_lists";

const clientOf = (token: string) =>
    createClient<paths>({ baseUrl: base_url, headers: { Authorization: `Bearer ${token}` } });
const client = clientOf(key);

readLists(async (query) => {
    const { data, error } = await client.GET("/v2/payments", { params: { query } });
    if (!data) throw new Error(error.detail);
    return data;
}, async (body) => {
    const { data, error } = await clientOf(import_key).POST("/v2/payments/imports", { body });
    if (!data) throw new Error(error.detail);
    return data;
});
