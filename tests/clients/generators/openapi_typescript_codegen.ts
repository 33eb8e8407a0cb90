// Reads the list by each query, and imports payments, with a client of openapi-typescript-codegen. See test_generators.py.

import { OpenAPI, PaymentsService } from "./generated";
import { base_url, import_key, key, readLists } from "./read_lists";

OpenAPI.BASE = base_url;
OpenAPI.TOKEN = key;

// createdAt[gte] is the argument createdAtGte.
const argument = (name: string) => name.replace(/\[(.)(.*)\]/, (_, first, rest) => first.toUpperCase() + rest);

readLists((query) => {
    const values = Object.entries(query).map(([name, value]) => [argument(name), value]);
    return PaymentsService.listPayments(Object.fromEntries(values)) as Promise<any>;
}, (requestBody) => {
    OpenAPI.TOKEN = import_key;
    return PaymentsService.importPayments({ requestBody }) as Promise<any>;
});
