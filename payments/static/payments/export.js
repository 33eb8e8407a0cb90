// Exports. A response holds a part of the file; its Link header leads to the next part. The browser joins the parts and
// saves them as one file. The form's options are stored for the next export.
const exportBar = document.querySelector("details.export");
const output = exportBar?.querySelector("output");

async function fetchPart(url) {
    const response = await fetch(url);
    const seconds = response.headers.get("Retry-After");
    if (!seconds) return response;
    await new Promise((resolve) => { setTimeout(resolve, seconds * 1000); });
    return fetch(url);
}

async function fetchParts(url, showProgress) {
    const parts = [];
    let size = 0;
    for (let next = new URL(url, location.href); next; ) {
        const response = await fetchPart(next);
        if (response.redirected) throw new Error("Log in again.");
        if (!response.ok) throw new Error(await response.text());
        const part = await response.blob();
        parts.push(part);
        size += part.size;
        showProgress(size < 1e6 ? `${Math.ceil(size / 1e3)} kB` : `${(size / 1e6).toFixed(1)} MB`);
        const link = /^<([^>]+)>; rel="next"$/.exec(response.headers.get("Link") ?? "");
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

async function exportFile({ href, suffix }, options = "") {
    const url = `${href}?${exportBar.dataset.query}${options}`;
    const parts = await fetchParts(url, (progress) => { output.textContent = progress; });
    save(parts, `${exportBar.dataset.name}.${suffix}`);
}

async function storeOptions(form, body) {
    const response = await fetch(form.action, { method: "POST", body });
    if (response.redirected || response.status === 403) throw new Error("Log in again.");
    if (!response.ok) throw new Error(await response.text());
}

async function run(button, work) {
    button.disabled = true;
    try {
        await work();
        output.textContent += ", complete";
    } catch (error) {
        output.textContent = `Export failed; no file was saved. ${error.message}`;
    }
    button.disabled = false;
}

for (const button of exportBar?.querySelectorAll("button") ?? []) {
    button.hidden = false;
    if (button.type === "button") button.addEventListener("click", () => run(button, () => exportFile(button.dataset)));
}

exportBar?.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const form = event.target;
    run(event.submitter, async () => {
        const options = new FormData(form);
        await storeOptions(form, options);
        options.delete("csrfmiddlewaretoken");
        await exportFile(form.dataset, `&${new URLSearchParams(options)}`);
    });
});
