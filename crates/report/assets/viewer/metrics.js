/* Metrics: one line per id; the grid and the rows of a group are made when it is unfolded or searched. */
const GRID_FIGURES = 8;
const GRID_COLUMNS = 16;
const BETTER = { lower: 'lower is better', higher: 'higher is better', neither: 'neither way is better' };
const isShared = (m) => m.population === 'core_shared';
const valueOf = (m) => (m.value == null ? '-' : human(m.value, m.unit));
const interval = (m) => {
  const [a, b] = [m.ci.low, m.ci.high].map((v) => human(v, m.unit).match(/^(.*?)( \S+)?$/).slice(1));
  const text = a[1] === b[1] ? `[${a[0]}, ${b[0]}]${a[1] || ''}` : `[${a.join('')}, ${b.join('')}]`;
  return m.earlier ? `${text}, ${m.earlier.runs + 1} runs` : text;
};
const paramsOf = (m) => Object.entries(m.params || {}).map(([k, v]) => `${k}=${v}`);
const metricRow = (m, names) => {
  const cell = (text, v) => make('td', v === undefined ? {} : { 'data-v': String(v) }, text);
  const quality = m.quality + (m.flags && m.flags.length ? ' ' + m.flags.join(' ') : '') + (isShared(m) ? ', core shared' : '') + (m.why ? ': ' + m.why : '');
  return make('tr', {}, ...names.map((k) => ((m.params || {})[k] === undefined ? make('td', {}, '') : make('th', { scope: 'row' }, String(m.params[k])))),
    m.value == null ? cell('-') : cell(valueOf(m), m.value), m.ci ? cell(interval(m), m.ci.high - m.ci.low) : cell('-'),
    cell(String(m.n), m.n), make('td', { class: 'q' }, m.estimator), make('td', { class: 'q' }, quality));
};
/* What a folded group says: its one figure with the interval, or how many there are and from where to where they reach. */
const span = (own) => {
  const known = own.filter((m) => m.value != null).sort((a, b) => a.value - b.value), ends = [known[0], known[known.length - 1]].filter(Boolean).map(valueOf);
  const text = own.length === 1
    ? [...(paramsOf(own[0]).length ? [make('span', {}, paramsOf(own[0]).join(', '))] : []), make('b', {}, valueOf(own[0])), ...(own[0].ci ? [make('span', {}, interval(own[0]))] : [])]
    : [make('span', {}, `${own.length} figures`), make('b', {}, [...new Set(ends)].join(' to ') || '-')];
  for (const q of ['suspect', 'rejected']) {
    const n = own.filter((m) => m.quality === q).length;
    if (n) text.push(make('span', { class: 'tag' }, `${n} ${q}`));
  }
  const shared = own.filter(isShared).length;
  if (shared) text.push(make('span', { class: 'tag' }, `${shared} core shared`));
  return text;
};
/* Values by two parameters, where exactly two vary and hardly a cell stays empty. */
const grid = (id, own, names) => {
  const param = (m, k) => String((m.params || {})[k] ?? ''), of = (k) => [...new Set(own.map((m) => param(m, k)))];
  const varying = names.filter((k) => of(k).length > 1);
  if (varying.length !== 2 || own.length < GRID_FIGURES) return [];
  const [across, down] = varying, columns = of(across), rows = of(down);
  if (columns.length > GRID_COLUMNS || columns.length * rows.length > own.length * 2) return [];
  const key = (c, r) => JSON.stringify([c, r]), at = new Map(own.map((m) => [key(param(m, across), param(m, down)), m]));
  const cell = (c, r) => { const m = at.get(key(c, r)); return make('td', {}, m ? valueOf(m) + (m.quality === 'suspect' ? ' ?' : '') + (isShared(m) ? ' ~' : '') : ''); };
  const body = rows.map((r) => make('tr', {}, make('th', { scope: 'row' }, r), ...columns.map((c) => cell(c, r))));
  const table = make('table', { class: 'grid' }, heading([`${down} / ${across}`, ...columns].map((t) => [t])), make('tbody', {}, ...body));
  const note = (text) => make('p', { class: 'quiet grid' }, text);
  const notes = own.some((m) => m.quality === 'suspect') ? [note('? marks figures that a check or warning weakens.')] : [];
  if (own.some(isShared)) notes.push(note('~ marks figures of a core that was shared.'));
  return [scrolled(id, table), ...notes];
};
const metricGroup = (id, own) => {
  const names = [...new Set(own.flatMap((m) => Object.keys(m.params || {})))].sort(), inside = make('div', {});
  const el = make('details', { class: 'mg' }, make('summary', {}, make('code', {}, id), ' ', ...span(own)), inside);
  let rows = null;
  const build = () => {
    if (rows) return rows;
    rows = own.map((m) => metricRow(m, names));
    const table = make('table', { class: 'rows' }, heading([...names.map((k) => [k]), ['Value', 1], ['Interval', 1], ['n', 1], ['Estimator'], ['Quality']]), make('tbody', {}, ...rows));
    inside.append(make('p', { class: 'quiet' }, BETTER[own[0].better] || own[0].better), ...grid(id, own, names), scrolled(id + ', rows', table));
    sortable(table);
    return rows;
  };
  el.addEventListener('toggle', () => { if (el.open) build(); });
  const texts = own.map((m) => [m.id, ...paramsOf(m), m.estimator, m.quality, ...(m.flags || []), isShared(m) ? 'core shared' : '', m.why || ''].join(' ').toLowerCase());
  return { el, build, texts };
};
const metricList = (metrics) => {
  const list = $('#metric-list'), box = $('#metric-search'), count = $('#metric-count'), all = $('#metric-all'), byId = new Map(), groups = [];
  if (!list) return;
  for (const m of metrics) { if (byId.has(m.id)) byId.get(m.id).push(m); else byId.set(m.id, [m]); }
  const probe = (id) => id.split('.')[0], several = new Set([...byId.keys()].map(probe)).size > 1;
  let last = '';
  for (const [id, own] of byId) {
    if (several && probe(id) !== last) { last = probe(id); list.append(make('h3', {}, last)); }
    groups.push(metricGroup(id, own));
    list.append(groups[groups.length - 1].el);
  }
  const find = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    for (const g of groups) {
      const hits = g.texts.map((t) => words.every((w) => t.includes(w))), some = hits.includes(true);
      n += hits.filter(Boolean).length;
      g.el.hidden = !some;
      g.el.open = words.length > 0 && some;
      g.el.classList.toggle('found', words.length > 0);
      if (g.el.open) g.build().forEach((tr, i) => { tr.hidden = !hits[i]; });
    }
    $$('h3', list).forEach((h) => { h.hidden = words.length > 0; });
    if (!words.length) groups.forEach((g) => $$('tr[hidden]', g.el).forEach((tr) => { tr.hidden = false; }));
    count.textContent = words.length ? `${n} of ${metrics.length}` : '';
    all.textContent = 'Unfold all';
  };
  box.addEventListener('input', find);
  all.addEventListener('click', () => {
    const open = all.textContent === 'Unfold all';
    groups.forEach((g) => { g.el.open = open; });
    all.textContent = open ? 'Fold all' : 'Unfold all';
  });
  /* page.html#find=WORDS opens with the search done. */
  const asked = location.hash.match(/^#find=(.+)/);
  if (!asked) return;
  try { box.value = decodeURIComponent(asked[1]); } catch { box.value = asked[1]; }
  find();
  box.scrollIntoView({ behavior: 'instant' });
};
