"use strict";
// Filters lists, copies replay lines, and refreshes live pages. The pages are complete without it.
(() => {
  const say = (text) => {
    let live = document.getElementById("say");
    if (!live) {
      live = Object.assign(document.createElement("p"), { id: "say", className: "key" });
      live.setAttribute("role", "status");
      document.querySelector("footer").append(live);
    }
    live.textContent = text;
  };

  // A form names the list that it filters. An item is shown if it has the text and every chosen value.
  for (const form of document.querySelectorAll("form[data-filter]")) {
    const items = [...document.getElementById(form.dataset.filter).querySelectorAll("[data-item]")];
    const texts = items.map((item) => item.textContent.toLowerCase());
    const apply = () => {
      const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      items.forEach((item, i) => {
        const has = words.every((word) => texts[i].includes(word));
        const chosen = [...form.querySelectorAll("select")].every((s) => !s.value || item.dataset[s.name] === s.value);
        const quiet = form.elements.suppressed.checked || item.dataset.suppressed !== "true";
        item.hidden = !(has && chosen && quiet);
        shown += item.hidden ? 0 : 1;
      });
      form.querySelector("output").textContent = `${shown} shown`;
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => { event.preventDefault(); apply(); });
    apply();
  }

  const copy = async (from) => {
    try {
      await navigator.clipboard.writeText(from.textContent);
      return true;
    } catch {
      getSelection().selectAllChildren(from);
      return document.execCommand("copy");
    }
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const done = await copy(document.getElementById(button.dataset.copy));
    button.textContent = done ? "Copied" : "Select and copy";
    say(done ? "The replay line is copied." : "Copying is not allowed here: the line is selected.");
  });

  // A link to a finding opens it; "/" goes to the search.
  const open = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", open);
  open();
  document.addEventListener("keydown", (event) => {
    const search = document.querySelector("input[type=search]");
    if (event.key !== "/" || !search || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    search.focus();
  });

  // Parts with data-live are refreshed, unless the page is hidden or the part has the focus.
  const parts = () => [...document.querySelectorAll("[data-live]")];
  if (parts().length > 0) {
    setInterval(async () => {
      if (document.hidden) return;
      try {
        const answer = await fetch(location.href, { headers: { accept: "text/html" } });
        if (!answer.ok) throw new Error(answer.status);
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const part of parts()) {
          const news = fresh.getElementById(part.id);
          if (news && !part.contains(document.activeElement) && part.innerHTML !== news.innerHTML) {
            part.replaceChildren(...news.childNodes);
          }
        }
        say("");
      } catch {
        say("The coordinator does not answer; this page is out of date.");
      }
    }, Number(document.body.dataset.every || 2000));
  }
})();
