// Uses every filter, and walks each list, with a client that openapi-typescript-codegen generated as `generated`.
// The arguments are the API key, and the value of each filter as JSON. The address is that of the OpenAPI document.
// The output is the IDs of each filter as JSON.

import { OpenAPI, PaymentsService } from "./generated";

declare const process: { argv: string[] };

type Arguments = Parameters<typeof PaymentsService.listPayments>[0];

const [key, values] = process.argv.slice(2);
OpenAPI.TOKEN = key;

// The arguments for a filter. The generator writes createdAt[gte] as createdAtGte.
function argumentsOf(name: string, value: any): Arguments {
    if (name === "all") return {};
    const currency = name.startsWith("amount") ? { currency: ["EUR" as const] } : {};
    const argument = name.replace(/\[(.)(.*)\]/, (_, first, rest) => first.toUpperCase() + rest);
    return { [argument]: value, ...currency };
}

// Returns the IDs of a list, page by page.
async function walk(query: Arguments): Promise<string[]> {
    const ids: string[] = [];
    let page = await PaymentsService.listPayments({ ...query, limit: 100 });
    while (true) {
        ids.push(...page._embedded.payments.map((payment) => payment.id));
        const next = page._links.next;
        if (!next) return ids;
        const from = new URL(next.href).searchParams.get("from")!;
        page = await PaymentsService.listPayments({ ...query, limit: 100, from });
    }
}

async function main(): Promise<void> {
    const ids: Record<string, string[]> = {};
    for (const [name, value] of Object.entries(JSON.parse(values))) {
        ids[name] = await walk(argumentsOf(name, value));
    }
    const payment = await PaymentsService.getPayment({ paymentId: ids["all"][0] });
    if (payment.id !== ids["all"][0]) throw new Error("This is another payment.");
    console.log(JSON.stringify(ids));
}

main();
