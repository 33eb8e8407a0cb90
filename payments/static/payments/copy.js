// Copy buttons. `data-copy` holds the text itself, `data-copy-from` the id of the element that contains it, and
// `data-copy-beside` a selector of that element beside the button.
// `data-print` prints the page.
const textFor = (button) => {
    const { copy, copyFrom, copyBeside } = button.dataset;
    if (copy !== undefined) return copy;
    if (copyFrom !== undefined) return document.getElementById(copyFrom).textContent;
    // Without the last line break, a shell does not run a pasted command at once.
    return button.parentElement.querySelector(copyBeside).textContent.trimEnd();
};

for (const button of document.querySelectorAll("[data-copy], [data-copy-from], [data-copy-beside]")) {
    const label = button.textContent;
    button.hidden = !navigator.clipboard; // browsers offer the clipboard only over TLS and on localhost
    button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(textFor(button));
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = label; }, 2000);
    });
}

for (const button of document.querySelectorAll("[data-print]")) {
    button.hidden = false;
    button.addEventListener("click", () => print());
}
