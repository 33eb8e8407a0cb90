// Fetches what was found part by part, each where the one before says that the next is, and saves it as one file.
const exports = document.querySelector(".export");

async function fetchPart(href) {
    const answer = await fetch(href);
    const seconds = answer.headers.get("Retry-After");
    if (!seconds) return answer;
    await new Promise((resolve) => { setTimeout(resolve, seconds * 1000); });
    return fetch(href);
}

async function fetchParts(href, told) {
    const parts = [];
    let size = 0;
    for (let next = new URL(href, location.href); next; ) {
        const answer = await fetchPart(next);
        if (!answer.ok || answer.redirected) throw new Error(answer.redirected ? "Log in again." : await answer.text());
        const part = await answer.blob();
        parts.push(part);
        size += part.size;
        told(`${(size / 1e6).toFixed(1)} MB`);
        const link = /^<([^>]+)>; rel="next"$/.exec(answer.headers.get("Link") ?? "");
        next = link && new URL(link[1], next);
    }
    return parts;
}

function save(parts, name) {
    const href = URL.createObjectURL(new Blob(parts));
    const link = Object.assign(document.createElement("a"), { href, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(href), 60000);
}

for (const button of exports?.querySelectorAll("button") ?? []) {
    const output = exports.querySelector("output");
    button.hidden = false;
    button.addEventListener("click", async () => {
        button.disabled = true;
        try {
            const href = `${button.dataset.href}?${exports.dataset.query}`;
            save(await fetchParts(href, (size) => { output.textContent = size; }), button.dataset.name);
            output.textContent += ", complete";
        } catch (error) {
            output.textContent = `Nothing was saved. ${error.message}`;
        }
        button.disabled = false;
    });
}
