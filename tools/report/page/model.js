'use strict';

// The report, and what of it the reader has selected. Nothing here draws.

const report = JSON.parse(document.getElementById('data').textContent);
const pictures = report.pictures;
const hasD3 = typeof d3 !== 'undefined';

// null: nothing is selected. first and last are iterations, both included.
const selection = {rank: null, first: null, last: null, measurement: null};
const selectionListeners = [];

function onSelection(listener) {
  selectionListeners.push(listener);
}

// Changes some of the selection. The browser keeps it when the page reloads itself.
function select(change) {
  Object.assign(selection, change);
  keepSelection();
  for (const listener of selectionListeners) listener();
}

// Selects like select(), but lets go of what is selected already.
function toggle(change) {
  const isSelected = Object.keys(change).every(key => selection[key] === change[key]);
  select(isSelected ? Object.fromEntries(Object.keys(change).map(key => [key, null])) : change);
}

function keepSelection() {
  try {
    history.replaceState(selection, '');
  } catch (error) {
    // Some viewers of attachments forbid it: then a reload begins anew.
  }
}

function restoreSelection() {
  if (history.state) Object.assign(selection, history.state);
  addEventListener('hashchange', keepSelection);
}

function isInSpan(first, last) {
  return selection.first === null || (last >= selection.first && first <= selection.last);
}

// "12.34 ms", as the terminal has it: four significant digits in s, ms, us or ns.
function formatSeconds(seconds) {
  if (seconds === null || !Number.isFinite(seconds)) return 'not known';
  const size = Math.abs(seconds);
  const [factor, unit] = size === 0 || size >= 0.99995 ? [1, 's'] : size >= 0.99995e-3 ? [1e3, 'ms'] :
      size >= 0.99995e-6 ? [1e6, 'us'] : [1e9, 'ns'];
  return `${Number((seconds * factor).toPrecision(4))} ${unit}`;
}

// "cannot tell" for CANNOT_TELL.
function enumWords(name) {
  return name.toLowerCase().replaceAll('_', ' ');
}

function formatPercent(share, digits = 1) {
  return share === null || !Number.isFinite(share) ? 'not known' : `${(share * 100).toFixed(digits)} %`;
}

// "+2.5 %" for the ratio 1.025.
function formatChange(ratio, digits = 1) {
  const percent = Number(((ratio - 1) * 100).toFixed(digits));
  return `${percent > 0 ? '+' : ''}${percent} %`;
}

function formatNumber(value) {
  return value === null || !Number.isFinite(value) ? 'not known' : `${Number(value.toPrecision(4))}`;
}

// "1.2 T" for 1.2e12.
function formatLarge(value) {
  for (const [size, prefix] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (value >= size) return `${Number((value / size).toPrecision(4))} ${prefix}`;
  }
  return `${formatNumber(value)} `;
}

// At an axis, which of a few iterations has places in between.
function formatIteration(iteration) {
  return Number.isInteger(iteration) ? String(iteration) : '';
}

function formatIterations(first, last) {
  return first === last ? `iteration ${first}` : `iterations ${first} to ${last}`;
}

function formatRank(rank, host) {
  return host ? `rank ${rank} (${host})` : `rank ${rank}`;
}

// The colour of a measurement: this library's own time is nobody's work.
function meaningOf(name, collective) {
  const isObserver = pictures.timeline && pictures.timeline.names.some(of => of.observer && of.name === name);
  return isObserver ? 'total' : collective ? 'waiting' : 'work';
}

// Returns true if other pictures know a measurement of this name.
function isMeasurement(name) {
  const {time_tree: tree, timeline} = pictures;
  return [...(tree ? tree.scopes : []), ...(timeline ? timeline.names : [])].some(of => of.name === name);
}

// Formats a row of the heat map.
function formatRow(row) {
  return row.first === row.last ? formatRank(row.first, row.host) : `ranks ${row.first} to ${row.last}`;
}

// The index of the row that a rank is in; -1 where there is none.
function rowOfRank(rank) {
  if (rank === null || !pictures.heat_map) return -1;
  return pictures.heat_map.rows.findIndex(row => row.first <= rank && rank <= row.last);
}

// Seconds of a cell of the heat map, null where nothing is known.
function cellSeconds(quantity, row, column) {
  const cell = pictures.heat_map[quantity][row * pictures.heat_map.columns.length + column];
  return cell === null ? null : Number((cell * pictures.heat_map.unit).toPrecision(4));
}
