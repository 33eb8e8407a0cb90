// Reads the list by each query, and imports payments, with a client of openapi-generator (typescript-axios). See test_generators.py.

import { Configuration, PaymentsApi } from "./generated";
import { base_url, import_key, key, readLists } from "./read_lists";

const apiOf = (accessToken: string) => new PaymentsApi(new Configuration({ basePath: base_url, accessToken }));
const api = apiOf(key);

// The parameters in the order of the generated method's arguments.
const bounds = (name: string) => ["gte", "gt", "lte", "lt"].map((bound) => `${name}[${bound}]`);
const names = ["limit", "from", "sort", "status", "method", "customerId", "sequenceType", "currency",
    ...["createdAt", "paidAt", "amount"].flatMap(bounds), "metadata"];

readLists(async (query) => {
    const values = names.map((name) => query[name]) as Parameters<PaymentsApi["listPayments"]>;
    return (await api.listPayments(...values)).data;
}, async (payments) => (await apiOf(import_key).importPayments(payments)).data);
