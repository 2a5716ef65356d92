// The inbox works without this. With it, times are the reader's own, deadlines count down,
// and a page changes when what it shows does. Nothing here decides anything.
"use strict";

(() => {
  const all = (selector, within = document) => within.querySelectorAll(selector);
  const tick = 1000;

  // Times. The text of the server is UTC and stays in the title.
  const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

  // span is a time in words, as the server writes it: the largest two units.
  function span(seconds) {
    const at = Math.max(0, units.findIndex(([, size]) => seconds >= size));
    const first = seconds < 1 ? 3 : at;
    const [name, size] = units[first];
    const n = Math.floor(seconds / size);
    if (first === 3) return `${n} ${name}`;
    const [lesser, less] = units[first + 1];
    const rest = Math.floor((seconds - n * size) / less);
    return rest === 0 || (first === 2 && n >= 10) ? `${n} ${name}` : `${n} ${name} ${rest} ${lesser}`;
  }

  function put(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  function showTimes(within) {
    for (const t of all("time[data-local]", within)) put(t, local.format(new Date(t.dateTime)));
  }

  function count() {
    const now = Date.now();
    for (const t of all("time[data-due]")) {
      const left = Math.floor((Date.parse(t.dateTime) - now) / 1000);
      put(t, left < 0 ? t.dataset.over || "its time is over" : `in ${span(left)}`);
      t.classList.toggle("soon", !t.dataset.over && left >= 0 && left < 300);
      const word = t.previousElementSibling;
      if (word && word.classList.contains("due-word")) word.hidden = left < 0;
      if (left < 0 && !t.dataset.passed) {
        t.dataset.passed = "1";
        if (page) setTimeout(refresh, tick);
      }
    }
    for (const t of all("time[data-ago]")) {
      const since = Math.floor((now - Date.parse(t.dateTime)) / 1000);
      put(t, since < 60 ? "just now" : `${span(since)} ago`);
    }
  }

  // A page of one thing: its regions are taken anew from the server when something
  // happened. A region stays as it is while its version does, and with it whatever
  // somebody is writing in it.
  const page = document.querySelector("[data-region]");
  let refreshing = null, again = false;

  function refresh() {
    if (refreshing) { again = true; return; }
    refreshing = fetch(location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" })
      .then((answer) => (answer.redirected ? anew() : answer.text()))
      .then((text) => { if (text) replace(new DOMParser().parseFromString(text, "text/html")); })
      .catch(() => {})
      .finally(() => {
        refreshing = null;
        if (again) { again = false; refresh(); }
      });
  }

  // anew loads the page as a link to it would: what was sent is not sent again.
  function anew() {
    location.replace(location.pathname + location.search);
  }

  function replace(fresh) {
    // A form stays with what its page shows. Where that is another thing now, all is shown anew.
    const was = document.querySelector("[data-shown]"), is = fresh.querySelector("[data-shown]");
    if (was && is && was.dataset.shown !== is.dataset.shown) { anew(); return; }
    for (const old of all("[data-region]")) {
      const now = fresh.querySelector(`[data-region="${old.dataset.region}"]`);
      if (!now || now.dataset.version === old.dataset.version) continue;
      const focused = old.contains(document.activeElement);
      old.replaceWith(now);
      showTimes(now);
      if (focused) { now.tabIndex = -1; now.focus({ preventScroll: true }); }
      announce(now);
    }
    for (const heading of [".title h1", "#runs"]) {
      const now = fresh.querySelector(heading), old = document.querySelector(heading);
      if (now && old && now.textContent !== old.textContent) old.replaceChildren(...now.childNodes);
    }
    const status = fresh.querySelector(".title .pill"), shown = document.querySelector(".title .pill");
    if (status && shown) { put(shown, status.textContent); shown.className = status.className; }
    count();
  }

  const said = document.createElement("p");
  said.className = "aside";
  said.setAttribute("role", "status");
  document.body.append(said);

  function announce(region) {
    const heading = region.querySelector("h2");
    if (heading) said.textContent = `${heading.textContent}: changed`;
  }

  // The queue: nothing moves. What is new is counted, and what was settled is marked where
  // it stands.
  const news = document.getElementById("news");
  const fresh = new Set();

  function queued(what) {
    for (const id of what.new || []) if (!document.getElementById(`row-${id}`)) fresh.add(id);
    for (const one of what.settled || []) {
      fresh.delete(one.id);
      const row = document.getElementById(`row-${one.id}`);
      if (!row) continue;
      row.classList.add("settled");
      put(row.querySelector("[data-state]"), one.text);
    }
    news.hidden = fresh.size === 0;
    put(news, fresh.size === 1 ? "1 new: show it" : `${fresh.size} new: show them`);
    const total = document.getElementById("waiting-count");
    const heading = document.getElementById("queue-count");
    if (total && what.total >= 0) put(total, what.total.toLocaleString("en"));
    if (heading && heading.dataset.all && what.total >= 0) put(heading, what.total === 1 ? "1 waits" : `${what.total.toLocaleString("en")} wait`);
  }

  // What no event tells of, such as what a job prints, is looked at again and again, for
  // as long as the page says so.
  setInterval(() => {
    if (!document.hidden && document.querySelector("[data-every]")) refresh();
  }, 5 * tick);

  // What the page shows may be old where nobody answers: it says so until somebody does.
  const silent = document.createElement("p");
  silent.className = "notice warning slim";
  silent.setAttribute("role", "status");
  silent.hidden = true;
  silent.textContent = "Placet does not answer. What stands here may have changed, and nothing can be decided now.";
  document.getElementById("main").prepend(silent);
  let waiting = 0;

  function answers(yes) {
    clearTimeout(waiting);
    waiting = 0;
    if (yes) silent.hidden = true;
  }

  function follow(address) {
    const stream = new EventSource(address);
    stream.addEventListener("open", () => answers(true));
    stream.addEventListener("queue", (e) => queued(JSON.parse(e.data)));
    stream.addEventListener("changed", refresh);
    stream.addEventListener("end", () => stream.close());
    // What is refused does not come back by itself. It may be that nobody is signed in any
    // more: then the page leads to where one signs in.
    stream.addEventListener("error", () => {
      if (stream.readyState !== EventSource.CLOSED) {
        if (!waiting) waiting = setTimeout(() => { silent.hidden = false; }, 5 * tick);
        return;
      }
      refresh();
      setTimeout(() => follow(address), 5 * tick);
    });
    addEventListener("pagehide", () => stream.close());
  }

  // A note that was begun is kept for as long as the tab is open, so that it is there again
  // behind a sign-in, a page that shows more, or a form for other arguments. It is gone once
  // its page asks for none any more, and when its writer signs out.
  const who = document.body.dataset.who;
  const about = `note ${who} ${location.pathname.replace(/\/edit$/, "")}`;
  const note = document.querySelector('textarea[name="note"]');

  function kept(act) {
    try { return act(sessionStorage); } catch { return null; } // some browsers keep nothing
  }

  if (who && note) {
    if (!note.value) note.value = kept((s) => s.getItem(about)) || "";
    note.addEventListener("input", () => kept((s) => s.setItem(about, note.value)));
  } else if (who && !location.pathname.endsWith("/edit")) {
    kept((s) => s.removeItem(about));
  }

  // One answer for one press: a second press of the same button does nothing.
  addEventListener("submit", (e) => {
    const form = e.target;
    if (form.method !== "post" || (e.submitter && e.submitter.formMethod === "dialog")) return;
    if (form.dataset.sent) { e.preventDefault(); return; }
    if (form.action.endsWith("/sign-out")) kept((s) => s.clear());
    form.dataset.sent = "1";
    form.classList.add("sent-off");
  });

  // A page that the browser kept is not what is stored now.
  addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });

  showTimes(document);
  count();
  setInterval(count, tick);
  if (document.body.dataset.live) follow(document.body.dataset.live);
})();
