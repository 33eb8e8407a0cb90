// Uses every filter, and walks each list, with a client that @hey-api/openapi-ts generated as `generated`.
// The arguments are the API key, and the value of each filter as JSON. The address is that of the OpenAPI document.
// The output is the IDs of each filter as JSON.

import { getPayment, listPayments, type ListPaymentsData } from "./generated";
import { client } from "./generated/client.gen";

declare const process: { argv: string[] };

type Query = NonNullable<ListPaymentsData["query"]>;

const [key, values] = process.argv.slice(2);
client.setConfig({ auth: () => key, throwOnError: true });

// Returns the query for a filter. The generator keeps the names of parameters.
function queryOf(name: string, value: any): Query {
    if (name === "all") return {};
    return { [name]: value, ...(name.startsWith("amount") ? { currency: ["EUR" as const] } : {}) };
}

// Returns the IDs of a list, page by page.
async function walk(query: Query): Promise<string[]> {
    const ids: string[] = [];
    let start: string | null = null;
    do {
        const from: Query = start ? { from: start } : {};
        const { data } = await listPayments({ query: { ...query, ...from, limit: 100 }, throwOnError: true });
        ids.push(...data._embedded.payments.map((payment) => payment.id));
        const next = data._links.next;
        start = next ? new URL(next.href).searchParams.get("from") : null;
    } while (start);
    return ids;
}

async function main(): Promise<void> {
    const ids: Record<string, string[]> = {};
    for (const [name, value] of Object.entries(JSON.parse(values))) {
        ids[name] = await walk(queryOf(name, value));
    }
    const { data } = await getPayment({ path: { payment_id: ids["all"][0] }, throwOnError: true });
    if (data.id !== ids["all"][0]) throw new Error("This is another payment.");
    console.log(JSON.stringify(ids));
}

main();
