// Export buttons. A response holds a part of the file; its Link header leads to the next part. The browser joins the
// parts and saves them as one file.
const exportBar = document.querySelector(".export");

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
        showProgress(`${(size / 1e6).toFixed(1)} MB`);
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

for (const button of exportBar?.querySelectorAll("button") ?? []) {
    const output = exportBar.querySelector("output");
    button.hidden = false;
    button.addEventListener("click", async () => {
        button.disabled = true;
        try {
            const url = `${button.dataset.href}?${exportBar.dataset.query}`;
            save(await fetchParts(url, (progress) => { output.textContent = progress; }), button.dataset.name);
            output.textContent += ", complete";
        } catch (error) {
            output.textContent = `Export failed; no file was saved. ${error.message}`;
        }
        button.disabled = false;
    });
}
