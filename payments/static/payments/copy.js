// Copy buttons. `data-copy` holds the text itself, `data-copy-from` the id of the element that contains it.
for (const button of document.querySelectorAll("[data-copy], [data-copy-from]")) {
    const label = button.textContent;
    button.hidden = !navigator.clipboard; // browsers offer the clipboard only over TLS and on localhost
    button.addEventListener("click", async () => {
        const text = button.dataset.copy ?? document.getElementById(button.dataset.copyFrom).textContent;
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = label; }, 2000);
    });
}
