// Puts the page together.

function letGo() {
  select({rank: null, first: null, last: null, measurement: null});
}

function showSelection() {
  const bar = document.getElementById('selection');
  const chips = [];
  const chip = (text, change) => element('button', {'type': 'button', 'aria-label': `Let go of ${text}`, click() { select(change); }}, `${text} \u00d7`);
  if (selection.rank !== null) chips.push(chip(`rank ${selection.rank}`, {rank: null}));
  if (selection.first !== null) chips.push(chip(formatIterations(selection.first, selection.last), {first: null, last: null}));
  if (selection.measurement !== null) chips.push(chip(selection.measurement, {measurement: null}));
  bar.hidden = chips.length === 0;
  if (chips.length > 1) chips.push(element('button', {type: 'button', click: letGo}, 'Let go of all'));
  bar.replaceChildren(...(chips.length > 0 ? ['Selected in all pictures:', ...chips] : []));
}

function reloadAgain() {
  const seconds = Number(document.body.dataset.reloadSeconds);
  if (!(seconds > 0)) return null;
  const timer = setInterval(() => location.reload(), seconds * 1000);
  const stop = element('button', {type: 'button', click() { clearInterval(timer); stop.remove(); }}, 'Stop');
  return element('p', {}, `This page reloads itself every ${seconds} s. `, stop);
}

function addFooter() {
  const footer = document.getElementById('footer');
  footer.append(...report.thinned.map(text => element('p.note', {}, `Thinned out: ${text}.`)));
  if (!hasD3 && Object.keys(pictures).length > 0) {
    footer.append(element('p.note', {}, 'This ott was built without D3, so that there are tables instead of pictures.'));
  }
  const reload = reloadAgain();
  if (reload) footer.append(reload);
  footer.append(element('p', {}, `Written by optim_test_tools ${report.version}.` + (hasD3 ? ' Drawn with D3 (d3js.org, BSD licence).' : '')));
}

restoreSelection();
for (const add of adders) add();
addFooter();
document.getElementById('contents').hidden = document.querySelectorAll('figure').length < 2;
showSelection();
onSelection(showSelection);
onSelection(redrawAll);
// Paper has other colours, and another width.
for (const media of ['(prefers-color-scheme: dark)', 'print']) matchMedia(media).addEventListener('change', redrawAll);
// Escape lets go of everything.
addEventListener('keydown', event => {
  if (event.key !== 'Escape') return;
  tooltip.hide();
  if (Object.values(selection).some(value => value !== null)) letGo();
});
let widthDrawn = innerWidth;
addEventListener('resize', () => {
  if (innerWidth !== widthDrawn) requestAnimationFrame(redrawAll);
  widthDrawn = innerWidth;
});
