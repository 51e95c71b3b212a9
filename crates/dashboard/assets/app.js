// What a page cannot do alone. Every page works without it, but for live tails.

for (const button of document.querySelectorAll('[data-copy]')) button.hidden = false;

document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy]');
  if (!button) return;
  const text = button.parentElement.querySelector('code, input')?.textContent ?? '';
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Not allowed';
  }
  setTimeout(() => { button.textContent = 'Copy'; }, 1500);
});

// Times in the reader's zone, with the exact time on hover.
const near = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });
const steps = [['second', 60], ['minute', 60], ['hour', 24], ['day', 14]];
function showTimes(root) {
  for (const time of root.querySelectorAll('time[datetime]')) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = exact.format(at);
    let amount = (at - Date.now()) / 1000;
    let unit = null;
    for (const [name, size] of steps) {
      if (Math.abs(amount) < size) { unit = name; break; }
      amount /= size;
    }
    time.textContent = unit ? near.format(Math.round(amount), unit) : exact.format(at);
  }
}
// The times of charts are in words already; the script only knows the reader's zone.
const short = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' });
for (const title of document.querySelectorAll('title[data-at]')) {
  const at = new Date(title.dataset.at);
  const words = title.textContent.split(': ').slice(1).join(': ');
  if (!Number.isNaN(at.getTime())) title.textContent = `${short.format(at)}: ${words}`;
}
showTimes(document);
setInterval(() => showTimes(document), 30_000);

// A form on its way says so, and is not sent a second time.
document.addEventListener('submit', (event) => {
  const form = event.target;
  if (form.getAttribute('method') === 'dialog') return;
  if ('sent' in form.dataset) return event.preventDefault();
  form.dataset.sent = '';
  event.submitter?.setAttribute('aria-busy', 'true');
  setTimeout(() => settle(form), 15_000);
});
function settle(form) {
  delete form.dataset.sent;
  for (const button of form.querySelectorAll('[aria-busy]')) button.removeAttribute('aria-busy');
}
// Whoever goes back finds the form as it was.
addEventListener('pageshow', () => document.querySelectorAll('form[data-sent]').forEach(settle));

// Texts that are checked while one types: <textarea data-check="ID"> sends its form to be checked, and takes the element of that id from the answer.
for (const area of document.querySelectorAll('textarea[data-check]')) {
  let timer = 0;
  let asked = 0;
  area.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(check, 600);
  });
  async function check() {
    const mine = ++asked;
    const shown = document.getElementById(area.dataset.check);
    const fields = new URLSearchParams(new FormData(area.form));
    fields.set('action', 'check');
    shown.setAttribute('aria-busy', 'true');
    try {
      const reply = await fetch(area.form.getAttribute('action'), { method: 'POST', body: fields });
      const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
      const fresh = page.getElementById(area.dataset.check);
      if (fresh && mine === asked) shown.replaceWith(fresh);
    } catch {
      // Saving says what is wrong.
    }
    shown.removeAttribute('aria-busy');
  }
}

// Lists that are filtered while one types: <input data-filter="#list"> hides the children whose text does not fit.
for (const input of document.querySelectorAll('input[data-filter]')) {
  const list = document.querySelector(input.dataset.filter);
  input.addEventListener('input', () => {
    const wanted = input.value.trim().toLowerCase();
    for (const child of list?.children ?? []) child.hidden = !child.textContent.toLowerCase().includes(wanted);
  });
}

// Live tails: <tbody data-live="/address"> gets rows at its top as they come; the button beside it pauses.
for (const list of document.querySelectorAll('[data-live]')) {
  const button = document.querySelector(`[data-pause="${list.id}"]`);
  let source = null;
  let waiting = [];
  let paused = false;
  const add = (html) => {
    const part = document.createElement('template');
    part.innerHTML = html;
    for (const row of [...part.content.children]) {
      if (row.id) document.getElementById(row.id)?.remove();
      row.classList.add('new');
      list.prepend(row);
    }
    showTimes(list);
    while (list.children.length > 500) list.lastElementChild.remove();
  };
  const label = () => {
    if (button) button.textContent = paused ? `Go on${waiting.length ? ` (${waiting.length})` : ''}` : 'Pause';
  };
  source = new EventSource(list.dataset.live);
  source.addEventListener('row', (event) => {
    if (paused) waiting.push(event.data); else add(event.data);
    label();
  });
  addEventListener('pagehide', () => source.close());
  if (button) {
    button.hidden = false;
    button.addEventListener('click', () => {
      paused = !paused;
      if (!paused) { waiting.forEach(add); waiting = []; }
      label();
    });
  }
}

// Keys.
const help = document.getElementById('help');
let before = '';
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest('input, textarea, select, [contenteditable]')) return;
  if (event.key === '/') {
    const search = document.querySelector('[data-search], input[type=search]');
    if (search) { event.preventDefault(); search.focus(); }
  } else if (event.key === '?') {
    help?.showModal();
  } else if (before === 'g') {
    const home = document.querySelector('.side a')?.getAttribute('href');
    const section = { h: '', a: '/approvals', c: '/calls', t: '/try' }[event.key];
    if (home && section !== undefined) location.href = home + section;
  }
  before = event.key;
});

// On a phone the menu is one line that scrolls: begin where one is.
const menu = document.querySelector('.side');
const place = menu?.querySelector('[aria-current]');
if (place) menu.scrollLeft = place.offsetLeft - (menu.clientWidth - place.offsetWidth) / 2;
