// Reads the list by each query, and imports payments, with a client of orval (axios). See test_generators.py.

import axios from "axios";
import { importPayments, listPayments } from "./generated";
import { base_url, import_key, key, readLists } from "./read_lists";

axios.defaults.baseURL = base_url;
axios.defaults.headers.common.Authorization = `Bearer ${key}`;

readLists(
    async (query) => (await listPayments(query)).data,
    async (payments) =>
        (await importPayments(payments, { headers: { Authorization: `Bearer ${import_key}` } })).data,
);
