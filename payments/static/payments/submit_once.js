// The form of a new key is sent once, even if its button is clicked twice: only the first response shows the key.
let isSent = false;

document.getElementById("apikey_form").addEventListener("submit", (event) => {
    if (isSent) event.preventDefault();
    isSent = true;
});
// The browser may show the same page again.
window.addEventListener("pageshow", () => { isSent = false; });
