// Keeps a page current. The server says on one stream what has changed; the page asks for itself again if it shows that. One tab of a
// browser has the stream and tells the others, because HTTP/1.1 allows six connections to a server. Without a stream, pages poll.
(() => {
  'use strict';
  const root = document.documentElement.dataset.root;
  const name = 'turntable console ' + root;
  const live = document.getElementById('live');
  const main = () => document.getElementById('main');
  const pollEvery = 5000;
  const slowEvery = 30000; // processors that stop send no hints, and deadlines pass without one
  let asking = 0, again = false, lost = false, timer = 0;

  const say = (text, bad) => {
    live.classList.toggle('lost', Boolean(bad));
    if (live.textContent !== text) live.textContent = text;
  };

  const refresh = () => {
    if (!main().dataset.about) return;
    if (Date.now() - asking < 6 * pollEvery) { again = true; return; } // one request at a time
    asking = Date.now();
    const ended = () => {
      asking = 0;
      if (again) { again = false; setTimeout(refresh, 1000); }
    };
    htmx.ajax('GET', main().dataset.address, { target: '#main', select: '#main', swap: 'outerHTML' }).then(ended, ended);
  };
  // heard handles a hint: what changed, or nothing for a poll.
  const heard = about => {
    const shown = (main().dataset.about || '').split(' ');
    if (!about || about.split(' ').some(a => shown.includes(a))) refresh();
  };
  const poll = on => {
    if (on && timer) return; // each failed attempt to connect comes here
    clearInterval(timer);
    timer = on ? setInterval(() => heard(''), pollEvery) : 0;
  };

  const channel = 'BroadcastChannel' in window ? new BroadcastChannel(name) : null;
  const tell = message => { receive(message); if (channel) channel.postMessage(message); };
  const receive = message => {
    if (message.state === 'live') { poll(false); if (!lost) say('Live'); }
    if (message.state === 'polling') { poll(true); if (!lost) say('Updated every 5 s'); }
    if (message.about !== undefined) heard(message.about);
  };
  if (channel) channel.onmessage = e => receive(e.data);

  const stream = () => {
    const source = new EventSource(root + '/changes');
    source.onopen = () => tell({ state: 'live', about: '' }); // what has changed before is not on the stream
    source.onmessage = e => tell({ about: e.data });
    source.onerror = () => {
      tell({ state: 'polling' });
      if (source.readyState === EventSource.CLOSED) setTimeout(stream, 4 * pollEvery); // refused: others have all streams
    };
  };
  if (navigator.locks && channel) navigator.locks.request(name, () => new Promise(stream)); // held until the tab is closed
  else stream();
  if (channel) say('Live');
  setInterval(() => heard(''), slowEvery);

  // Mentions: what is typed after an @ is completed with Tab, and chooses the receiver.
  document.addEventListener('keydown', e => {
    const at = e.target.dataset && e.target.dataset.mentions ? /(^|\s)(@\w*)$/.exec(e.target.value.slice(0, e.target.selectionStart)) : null;
    if (e.key !== 'Tab' || !at) return;
    const match = mentionsOf(e.target).filter(o => o.mention.startsWith(at[2]) || o.text.includes(at[2].slice(1).toLowerCase()))[0];
    if (!match || at[2] === match.mention) return;
    e.preventDefault();
    e.target.setRangeText(match.mention + ' ', e.target.selectionStart - at[2].length, e.target.selectionStart, 'end');
  });
  document.addEventListener('input', e => {
    const at = e.target.dataset && e.target.dataset.mentions ? /(^|\s)(@\w*)$/.exec(e.target.value) : null;
    const list = document.getElementById('mentions');
    if (!list) return;
    const match = at ? mentionsOf(e.target).filter(o => o.mention.startsWith(at[2]) || o.text.includes(at[2].slice(1).toLowerCase())) : [];
    list.textContent = match.length ? 'Tab completes: ' + match.map(o => o.label).join(', ') : '';
  });
  const mentionsOf = field => [...document.getElementById(field.dataset.mentions).options].filter(o => o.value).map(o => ({
    label: o.text, text: o.text.toLowerCase(), mention: (/@\w+/.exec(o.text) || [''])[0],
  }));

  // What the reader has opened and where they are survives a refresh.
  let open = [], focused = '';
  document.addEventListener('htmx:beforeSwap', e => {
    const fine = e.detail.xhr.status !== 401 && e.detail.xhr.status < 500 && e.detail.xhr.getResponseHeader('Content-Type').startsWith('text/html');
    e.detail.shouldSwap = fine && e.detail.xhr.responseText.includes('id="main"');
    if (!e.detail.shouldSwap) unreachable(e.detail.xhr.status === 401);
    open = [...main().querySelectorAll('details[id][open]')].map(d => d.id);
    focused = main().contains(document.activeElement) ? document.activeElement.id || 'main' : '';
  });
  document.addEventListener('htmx:afterSettle', () => {
    for (const id of open) { const d = document.getElementById(id); if (d) d.open = true; }
    if (focused && !main().contains(document.activeElement)) {
      (document.getElementById(focused) || main()).focus({ preventScroll: true });
    }
  });
  const unreachable = expired => {
    const why = expired ? 'Your credential has ended: sign in again. What' : 'The console cannot be reached: what';
    if (!lost) say(why + ' is shown is of ' + new Date().toISOString().slice(11, 19) + ' (UTC)', true);
    lost = true;
  };
  document.addEventListener('htmx:sendError', () => unreachable(false));
  document.addEventListener('htmx:afterOnLoad', e => { if (e.detail.xhr.status !== 401 && e.detail.xhr.status < 500 && lost) { lost = false; say('Live'); } });
})();
