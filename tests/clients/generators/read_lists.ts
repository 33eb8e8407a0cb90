// Reads the list by each query, page by page, and imports payments. Prints the IDs of each list, the details of all payments
// and the counts of the import.

declare const process: { argv: string[] };

export const [base_url, key, queries, import_key, records] = process.argv.slice(2);

type Link = { href: string };
type Payment = { id: string; details?: unknown };
type Page = { _embedded: { payments: Payment[] }; _links: { next?: Link } };
type Counts = { read: number; written: number; unchanged: number };
type Query = Record<string, any>;

export async function readLists(
    read: (query: Query) => Promise<Page>, send: (payments: any[]) => Promise<Counts>,
): Promise<void> {
    const ids: Record<string, string[]> = {};
    const details: Record<string, unknown> = {};
    for (const [name, query] of Object.entries<Query>(JSON.parse(queries))) {
        ids[name] = [];
        let from: string | undefined;
        do {
            const page = await read({ ...query, limit: 100, ...(from ? { from } : {}) });
            for (const payment of page._embedded.payments) {
                ids[name].push(payment.id);
                details[payment.id] = payment.details;
            }
            const next = page._links.next;
            from = next && new URL(next.href).searchParams.get("from")!;
        } while (from);
    }
    const { read: count, written, unchanged } = await send(JSON.parse(records));
    console.log(JSON.stringify({ ids, details, counts: [count, written, unchanged] }));
}
