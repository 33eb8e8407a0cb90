// A form is sent once, even if its button is clicked twice: only the first response shows a new key or recovery codes.
let isSent = false;

for (const form of document.querySelectorAll("#apikey_form, form.submit-once")) {
    form.addEventListener("submit", (event) => {
        if (isSent) event.preventDefault();
        isSent = true;
    });
}
// The browser may show the same page again.
window.addEventListener("pageshow", () => { isSent = false; });
