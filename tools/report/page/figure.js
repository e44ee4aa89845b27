// Draws what all pictures have: a heading and a caption, tooltip and keyboard, a table and its CSV.

// Functions that add a figure if the report has what it shows, in the order of the page; each file of a picture adds its own.
const adders = [];
const redraws = [];

// tag.class, attributes (functions are listeners), children: elements or texts.
function element(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split('.');
  const node = document.createElement(tag);
  if (classes.length > 0) node.className = classes.join(' ');
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(key, value);
    else if (value !== null && value !== false) node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children);
  return node;
}

function colorOf(meaning) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${meaning}`).trim();
}

// [meaning, text]...
function legend(entries) {
  return element('div.legend', {}, ...entries.map(([meaning, text]) =>
      element('span', {}, element('i', {style: `background: var(--${meaning})`}), text)));
}

const tooltip = {
  show(text, x, y) {
    const node = document.getElementById('tooltip');
    node.textContent = text;
    node.hidden = false;
    node.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - node.offsetWidth - 8))}px`;
    node.style.top = `${Math.max(4, y + 18 + node.offsetHeight > innerHeight ? y - node.offsetHeight - 10 : y + 18)}px`;
  },
  hide() {
    document.getElementById('tooltip').hidden = true;
  },
};

function announce(text) {
  document.getElementById('announcement').textContent = text;
}

// A cell that begins like a formula would be one in a spreadsheet.
function toCsv({columns, rows}) {
  const cell = value => {
    if (value === null || value === undefined) return '';
    let text = String(value);
    if (typeof value === 'string' && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map(row => row.map(cell).join(',') + '\n').join('');
}

function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], {type: 'text/csv'}));
  const link = element('a', {href: url, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// A message as one row: its fields by their names, those of messages inside of it behind the name of that. Lists are left out.
function rowOfMessage(message, before = '') {
  return Object.assign({}, ...Object.entries(message).map(([field, value]) => {
    const column = before + field.replaceAll('_', ' ');
    if (Array.isArray(value)) return {};
    if (value !== null && typeof value === 'object') return rowOfMessage(value, `${column} `);
    return {[column]: typeof value === 'boolean' ? (value ? 'yes' : 'no') : value};
  }));
}

// Messages of one kind as a table, with a column for each field that one of them has.
function messageTable(messages) {
  const rows = messages.map(message => rowOfMessage(message));
  const isThere = column => rows.some(row => ![undefined, null, ''].includes(row[column]));
  const columns = [...new Set(rows.flatMap(row => Object.keys(row)))].filter(isThere);
  return {columns, rows: rows.map(row => columns.map(column => row[column] ?? null))};
}

function tableElement({columns, rows}) {
  const maxRows = 500;
  const body = rows.slice(0, maxRows).map(row => element('tr', {}, ...row.map(value => typeof value === 'number' ?
      element('td.number', {}, String(value)) : element('td', {}, value === null || value === undefined ? '' : String(value)))));
  return element('div.table', {tabindex: 0},
      element('table', {}, element('thead', {}, element('tr', {}, ...columns.map(name => element('th', {scope: 'col'}, name)))),
          element('tbody', {}, ...body)),
      rows.length > maxRows ? element('p.note', {}, `The first ${maxRows} of ${rows.length} rows; CSV has all.`) : '');
}

// Adds a picture to the page. options:
//   id, title, caption
//   table()            {columns, rows} of all that it shows
//   controls           elements beside the heading
//   draw(node, width)  draws into a node, and returns marks: [{x, y, label, select}], in the order of the arrow keys.
//                      x and y are pixels in the node; perRow: so many marks are a row, for the keys up and down.
//                      locate(x, y) finds a mark's index, where the nearest one is not meant; span(x) the iterations
//                      that lie there, or zoomTo(from, to), for dragging.
//   plain              whether it draws without D3
function addFigure(options) {
  const {id, title, caption, table, draw} = options;
  const drawing = element('div.drawing', {
    'tabindex': options.plain ? null : 0,
    'role': 'group',
    'aria-label': options.plain ? title : `${title}. Arrow keys go from value to value, Enter selects, Escape lets go.`,
  });
  const tableDetails = element('details', {
    toggle() {
      if (tableDetails.open && tableDetails.children.length === 1) tableDetails.append(tableElement(table()));
    },
  }, element('summary', {}, 'As a table'));
  const figure = element('figure', {id, 'aria-labelledby': `${id}-title`},
      element('div.heading', {}, element('h3', {id: `${id}-title`}, title), ...(options.controls || []),
          element('button', {type: 'button', 'aria-label': `${title} as CSV`, click() { download(`${id}.csv`, toCsv(table())); }}, 'CSV')),
      element('p.caption', {}, caption), drawing, tableDetails);
  document.getElementById('pictures').append(figure);
  document.getElementById('contents').append(element('a', {href: `#${id}`}, title));
  if (!hasD3 && !options.plain) {
    drawing.remove();
    tableDetails.open = true;
    return;
  }
  const state = {marks: [], cursor: -1, isKeyboard: false};
  const redraw = () => {
    drawing.replaceChildren();
    Object.assign(state, {perRow: 1, locate: null, span: null, zoomTo: null}, draw(drawing, Math.max(240, drawing.clientWidth || 1000)));
    if (state.isKeyboard && document.activeElement === drawing) showCursor(drawing, state);
  };
  if (!options.plain) followPointer(drawing, state);
  if (!options.plain) followKeys(drawing, state);
  redraw();
  redraws.push(redraw);
}

function redrawAll() {
  for (const redraw of redraws) redraw();
}

function nearest(marks, x, y) {
  let best = -1;
  let shortest = 40 * 40;
  marks.forEach((mark, index) => {
    const distance = (mark.x - x) ** 2 + (mark.y - y) ** 2;
    if (distance <= shortest) [best, shortest] = [index, distance];
  });
  return best;
}

function followPointer(drawing, state) {
  const place = event => {
    const box = drawing.getBoundingClientRect();
    return [event.clientX - box.left + drawing.scrollLeft, event.clientY - box.top];
  };
  const find = event => {
    const [x, y] = place(event);
    return state.locate ? state.locate(x, y) : nearest(state.marks, x, y);
  };
  let pressed = null;
  drawing.addEventListener('pointermove', event => {
    state.isKeyboard = false;
    const index = find(event);
    if (index < 0) tooltip.hide();
    else tooltip.show(state.marks[index].label, event.clientX, event.clientY);
  });
  drawing.addEventListener('pointerleave', () => tooltip.hide());
  drawing.addEventListener('pointerdown', event => { pressed = place(event)[0]; });
  drawing.addEventListener('pointerup', event => {
    const x = place(event)[0];
    const [left, right] = [Math.min(x, pressed), Math.max(x, pressed)];
    if (pressed !== null && right - left > 5 && state.span) {
      select({first: state.span(left).first, last: state.span(right).last});
    } else if (pressed !== null && right - left > 5 && state.zoomTo) {
      state.zoomTo(left, right);
    } else {
      const index = find(event);
      if (index >= 0 && state.marks[index].select) toggle(state.marks[index].select);
    }
    pressed = null;
  });
}

function showCursor(drawing, state) {
  const mark = state.marks[state.cursor];
  if (!mark) return;
  const box = drawing.getBoundingClientRect();
  tooltip.show(mark.label, box.left + mark.x, box.top + mark.y);
  announce(mark.label);
}

function followKeys(drawing, state) {
  drawing.addEventListener('keydown', event => {
    const steps = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: state.perRow, ArrowUp: -state.perRow};
    const mark = state.marks[state.cursor];
    if (event.key in steps) {
      state.cursor = Math.max(0, Math.min(state.marks.length - 1, state.cursor < 0 ? 0 : state.cursor + steps[event.key]));
    } else if (event.key === 'Home') {
      state.cursor = 0;
    } else if (event.key === 'End') {
      state.cursor = state.marks.length - 1;
    } else if ((event.key === 'Enter' || event.key === ' ') && mark && mark.select) {
      state.isKeyboard = true;
      toggle(mark.select);
    } else {
      return;
    }
    event.preventDefault();
    state.isKeyboard = true;
    showCursor(drawing, state);
  });
  drawing.addEventListener('blur', () => tooltip.hide());
}

// An SVG that fills the node, and a group in it with room for axes.
function addSvg(node, width, height, margin) {
  const svg = d3.select(node).append('svg').attr('width', width).attr('height', height).attr('aria-hidden', 'true');
  return svg.append('g').attr('transform', `translate(${margin.left},${margin.top})`);
}

function addXAxis(group, {x, innerWidth: inner, innerHeight: height, formatX}) {
  const axis = d3.axisBottom(x).ticks(Math.max(2, Math.floor(inner / 110))).tickSizeOuter(0);
  if (formatX) axis.tickFormat(formatX);
  const ticks = group.append('g').attr('class', 'axis').attr('transform', `translate(0,${height})`).call(axis).selectAll('.tick');
  // The last one's text would be cut.
  ticks.filter(value => x(value) > inner - 24).select('text').attr('text-anchor', 'end').attr('x', value => inner - x(value) + 8);
}

// The selected span behind a picture with iterations from left to right.
function shadeSpan(group, x, height) {
  if (selection.first === null) return;
  const [low, high] = x.range();
  const left = Math.max(low, Math.min(high, x(selection.first)));
  const right = Math.max(left + 2, Math.min(high, x(selection.last + 1)));
  group.append('rect').attr('class', 'span').attr('x', left).attr('width', right - left).attr('height', height)
      .attr('fill', 'none').attr('stroke', colorOf('selected')).attr('stroke-width', 2);
}

// Iterations from left to right: a scale, and the column at a place.
function iterationScale(columns, width) {
  return d3.scaleLinear().domain([columns[0].first, columns[columns.length - 1].last + 1]).range([0, width]);
}

function columnAt(columns, x, place) {
  const iteration = x.invert(place);
  let index = columns.findIndex(column => iteration < column.last + 1);
  if (index < 0) index = columns.length - 1;
  return index;
}

const ruler = document.createElement('canvas').getContext('2d');

// Returns the width of a text in a picture, in pixels.
function textWidth(text, isBold = false) {
  ruler.font = `${isBold ? 700 : 400} 12px system-ui, sans-serif`;
  return ruler.measureText(text).width;
}

// A text for a place of so many pixels; empty where there is none.
function fit(text, width) {
  const whole = textWidth(text);
  if (whole <= width) return text;
  let most = Math.floor(text.length * width / whole);
  while (most > 0 && textWidth(text.slice(0, most) + '\u2026') > width) --most;
  return most > 0 ? text.slice(0, most) + '\u2026' : '';
}

// Black or white, whichever can be read on a colour.
function inkOn(color) {
  const {r, g, b} = d3.rgb(color);
  const [red, green, blue] = [r, g, b].map(part => part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#000000' : '#ffffff';
}
