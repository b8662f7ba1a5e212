/* Facts of the machine, and checks that passed: the whole lists are made when they are unfolded. */
const factNumber = (v, unit) => (['ns', 'By', 'Hz', '[ppm]'].includes(unit) ? human(v, unit) : !unit || unit === '1' ? String(v) : `${v} ${unit.replace(/[{}]/g, '')}`);
const ranges = (list) => {
  const out = [];
  for (const n of list) { const l = out[out.length - 1]; if (l && l[1] + 1 === n) l[1] = n; else out.push([n, n]); }
  return out.map(([a, b]) => (a === b ? String(a) : `${a}-${b}`)).join(', ');
};
/* Texts of values in a row: semicolons separate values with parts. As machmeter_data::FactValue::human. */
const factRow = (values, texts) => (texts.length ? texts.join(values.some((x) => x !== null && typeof x === 'object') ? '; ' : ', ') : 'none');
const factPairs = (map, unit, between) => {
  const keys = Object.keys(map), whole = keys.filter((k) => /^\d+$/.test(k)).sort((a, b) => a - b), text = (k) => {
    const [, stem, own] = (!unit && typeof map[k] === 'number' && /^(.*)_(ns|bytes|hz)$/.exec(k)) || [];
    return (own ? stem : k) + between + factText(map[k], own ? { ns: 'ns', bytes: 'By', hz: 'Hz' }[own] : unit);
  };
  return factRow(Object.values(map), [...whole, ...keys.filter((k) => !/^\d+$/.test(k))].map(text));
};
const factItem = (v, unit) => {
  if (v === null || typeof v !== 'object' || Array.isArray(v)) return factText(v, unit);
  const { name, ...others } = v;
  if (typeof name !== 'string') return factPairs(v, unit, ' ');
  return Object.keys(others).length ? `${name} (${factPairs(others, unit, ' ')})` : name;
};
const factText = (v, unit) => {
  if (Array.isArray(v)) return !unit && v.length > 2 && v.every(Number.isInteger) ? ranges(v) : factRow(v, v.map((x) => factItem(x, unit)));
  if (v !== null && typeof v === 'object') return factPairs(v, unit, ': ');
  if (typeof v === 'number') return factNumber(v, unit);
  return (v === true ? 'yes' : v === false ? 'no' : v) + (unit && unit !== '1' ? ' ' + unit : '');
};
const factCell = (f) => {
  if (!f) return make('td', { class: 'none' }, 'not captured');
  if (f.value != null) return make('td', {}, factText(f.value, f.unit));
  return make('td', { class: 'unknown' }, (f.state === 'known' ? 'no value' : f.state) + (f.why ? ': ' + f.why : ''));
};
const factList = (machine) => {
  const box = $('#all-facts');
  if (!box) return;
  unfolded(box, () => {
    const { before, after } = machine, compared = Object.keys(after).length > 0;
    const paths = Object.keys({ ...before, ...after }).sort();
    const rows = paths.map((path) => {
      const a = before[path], b = after[path];
      const key = (f) => JSON.stringify(f ? [f.value ?? null, f.state] : null), changed = compared && key(a) !== key(b);
      return make('tr', { class: changed ? 'changed' : null }, make('th', { scope: 'row' }, make('code', {}, path)), factCell(a), changed ? factCell(b) : make('td', {}, compared ? 'same' : '-'), make('td', {}, (a || b).source));
    });
    box.append(scrolled('Machine facts', make('table', { class: 'facts' }, heading([['Fact'], ['Value'], ['After the run'], ['Source']]), make('tbody', {}, ...rows))));
  });
};

const checkRow = (c) => {
  const [kind, word] = c.state === 'pass' ? ['pass', 'pass'] : ['na', 'n/a'], seen = make('td', { title: c.source }, c.observed);
  const state = make('td', { class: 'state st-' + kind }, drawn('svg', { class: 'icon', 'aria-hidden': 'true' }, drawn('use', { href: '#i-' + kind })), word);
  return make('tr', {}, state, make('th', { scope: 'row' }, make('code', {}, c.id), ' ' + c.name), seen, make('td', {}, c.limit || ''));
};
const quietChecks = (checks) => {
  const box = $('#quiet-checks');
  if (!box) return;
  unfolded(box, () => {
    const rows = ['pass', 'not_applicable'].flatMap((s) => checks.filter((c) => c.state === s).sort((a, b) => (a.id < b.id ? -1 : 1)));
    box.append(scrolled('Checks that pass or cannot apply here', make('table', { class: 'checks' }, heading(['State', 'Check', 'Seen', 'Limit'].map((t) => [t])), make('tbody', {}, ...rows.map(checkRow)))));
  });
};
