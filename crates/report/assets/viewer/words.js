/* The page, words and numbers. */
const root = document.documentElement;
let errors = 0;
const failed = (e) => { errors += 1; root.dataset.errors = String(errors); console.error(e); };
root.dataset.errors = '0';
window.addEventListener('securitypolicyviolation', (e) => failed(new Error('policy: ' + e.violatedDirective)));

/* ---- words and numbers ---- */
const digits = (v) => {
  const m = Math.abs(v);
  if (!Number.isFinite(v)) return '?';
  if (m === 0) return '0';
  if (m < 1e-4 || m >= 1e6) return v.toExponential(2).replace('e+', 'e');
  if (m >= 99.95) return v.toFixed(0);
  if (m >= 9.995) return v.toFixed(1);
  if (m >= 0.9995) return v.toFixed(2);
  return v.toFixed(Math.min(9, Math.max(0, 2 - Math.floor(Math.log10(m)))));
};
const SCALES = {
  ns: [[1, 'ns'], [1e3, 'us'], [1e6, 'ms'], [1e9, 's']],
  By: [[1, 'B'], [1024, 'KiB'], [1048576, 'MiB'], [1073741824, 'GiB']],
  'By/s': [[1, 'B/s'], [1e3, 'kB/s'], [1e6, 'MB/s'], [1e9, 'GB/s']], '{flop}/s': [[1, 'flop/s'], [1e3, 'kflop/s'], [1e6, 'Mflop/s'], [1e9, 'Gflop/s']],
  Hz: [[1, 'Hz'], [1e3, 'kHz'], [1e6, 'MHz'], [1e9, 'GHz']],
};
const SUFFIX = { '{tick}': ' ticks', 'ns/By': ' ns/B', '[ppm]': ' ppm', '/Hz': ' /Hz' };
const human = (v, unit) => {
  const s = SCALES[unit];
  if (s) {
    const hit = [...s].reverse().find((f) => Math.abs(v) >= f[0] * 0.9995) || s[0];
    return digits(v / hit[0]) + ' ' + hit[1];
  }
  if (unit === '1' && v >= 0.9995 && v < 1) return v > 0.9999 ? '> 99.99 %' : +(Math.floor(v * 1e4) / 100).toFixed(2) + ' %';
  if (unit === '{count}' && Number.isInteger(v) && Math.abs(v) < 1e6) return String(v);
  return unit === '1' ? digits(v * 100) + ' %' : digits(v) + (SUFFIX[unit] || '');
};
const tick = (v, unit) => {
  const [n, ...rest] = human(v, unit).split(' ');
  const [m, e] = n.split('e');
  const short = (m.includes('.') ? m.replace(/0+$/, '').replace(/\.$/, '') : m) + (e === undefined ? '' : 'e' + e);
  return [short, ...rest].join(' ');
};
const percentile = (x) => {
  const p = 1 - 1 / x;
  return String(+(p * 100).toFixed(6)) + ' %';
};

/* ---- building blocks ---- */
const $ = (s, el = document) => el.querySelector(s);
const $$ = (s, el = document) => [...el.querySelectorAll(s)];
const make = (tag, attributes = {}, ...children) => {
  const el = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) {
    if (k.startsWith('on')) el.addEventListener(k.slice(2), v); else if (v !== null) el.setAttribute(k, v);
  }
  el.append(...children);
  return el;
};
const drawn = (tag, attributes, ...children) => {
  const el = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [k, v] of Object.entries(attributes)) el.setAttribute(k, v);
  el.append(...children);
  return el;
};
const color = (name) => getComputedStyle(root).getPropertyValue('--' + name).trim();
const DASH = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 2], [12, 4], [1, 3], [6, 2, 1, 2, 1, 2]];
const dashOf = (i) => (i + 3 * Math.floor(i / 8)) % 8;
const redraws = [];
const WIDE = () => root.clientWidth > 600;

/* ---- theme ---- */
const THEMES = ['auto', 'light', 'dark'];
let theme = 'auto';
try { theme = localStorage.getItem('machmeter-theme') || 'auto'; } catch { /* storage is off: start from auto */ }
if (!THEMES.includes(theme)) theme = 'auto';
const applyTheme = (t) => {
  if (t === 'auto') delete root.dataset.theme; else root.dataset.theme = t;
  redraws.forEach((r) => r());
};
const themeButton = $('#theme');
const nameTheme = () => { themeButton.textContent = 'Theme: ' + theme; };
themeButton.addEventListener('click', () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % 3];
  try { localStorage.setItem('machmeter-theme', theme); } catch { /* not kept */ }
  nameTheme();
  applyTheme(theme);
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => applyTheme(theme));
/* Canvases keep their pixels on paper, so charts are drawn anew for it: light, and as wide as a page. */
const PAPER_WIDTH = 660;
let printing = false;
window.addEventListener('beforeprint', () => { printing = true; applyTheme('light'); });
window.addEventListener('afterprint', () => { printing = false; applyTheme(theme); });
