// Adds the browser's local time to the times of a page, which are in UTC: in a line of its own within an element of the
// class `moment`, otherwise in a tooltip. A browser in UTC needs no other time.
const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
const swedish = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" }); // writes ISO 8601

for (const time of timeZone === "UTC" ? [] : document.querySelectorAll("time[datetime]")) {
    const text = `${swedish.format(new Date(time.dateTime))} ${timeZone}`;
    const moment = time.closest(".moment");
    if (moment) {
        moment.append(Object.assign(document.createElement("span"), { className: "local quiet", textContent: text }));
    } else {
        time.title = text;
    }
}
