// Buttons that copy a text: their own, or that of the element they name.
for (const button of document.querySelectorAll("[data-copy], [data-copy-of]")) {
    const named = button.dataset.copyOf;
    const label = button.textContent;
    button.hidden = !navigator.clipboard; // which browsers give to pages that came over TLS, or from this machine
    button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(button.dataset.copy ?? document.getElementById(named).textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = label; }, 2000);
    });
}
