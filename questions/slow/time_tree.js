// Draws where the time goes: measurements inside of measurements, as a tree that opens.

function addTimeTree() {
  const data = pictures.time_tree;
  if (!data) return;
  const {scopes, unit} = data;
  const inner = scopes.map(() => []);
  const outermost = [];
  scopes.forEach((scope, index) => (scope.parent < 0 ? outermost : inner[scope.parent]).push(index));
  const isOpen = scopes.map((_, index) => inner[index].length > 0 && scopes.length <= 40);
  const depths = scopes.map(() => 0);
  scopes.forEach((scope, index) => { depths[index] = scope.parent < 0 ? 0 : depths[scope.parent] + 1; });
  let longest = 0;
  for (const scope of scopes) longest = Math.max(longest, scope.seconds, scope.longest);

  // Returns the seconds of the rank that is selected, if they are kept.
  function secondsOf(scope) {
    const cell = selection.rank === null ? undefined : scope.rows[rowOfRank(selection.rank)];
    return cell === undefined || cell === null ? scope.seconds : Number((cell * unit).toPrecision(4));
  }

  function visible(indices = outermost) {
    return indices.flatMap(index => [index, ...(isOpen[index] ? visible(inner[index]) : [])]);
  }

  function rowElement(index, node) {
    const scope = scopes[index];
    const seconds = secondsOf(scope);
    const children = inner[index];
    const isSelected = selection.measurement === scope.name;
    const width = value => `${Math.max(0, Math.min(100, 100 * value / longest))}%`;
    return element(isSelected ? 'div.selected' : 'div', {
      'role': 'row', 'aria-level': depths[index] + 1, 'aria-selected': isSelected,
      'aria-expanded': children.length > 0 ? String(isOpen[index]) : null, 'data-name': scope.name, 'tabindex': -1,
      'title': `${scope.name}: ${formatSeconds(seconds)} an iteration, ${formatNumber(scope.per_iteration)} times; own ` +
          `${formatSeconds(scope.own_seconds)}; longest on rank ${scope.longest_rank}: ${formatSeconds(scope.longest)}`,
      click(event) {
        if (event.target.classList.contains('toggle')) setOpen(index, !isOpen[index], node);
        else toggle({measurement: scope.name});
      },
    },
    element('span.name', {role: 'gridcell', style: `padding-left: ${depths[index]}em`},
        element('span.toggle', {'aria-hidden': 'true'}, children.length === 0 ? '' : isOpen[index] ? '\u25be' : '\u25b8'), scope.name),
    element('span.bar', {'role': 'presentation'},
        element('span.value', {style: `width: ${width(seconds)}; background: var(--${meaningOf(scope.name, scope.collective)})`}),
        element('span.mean', {style: `width: ${width(scope.seconds)}`, title: 'mean of all ranks'})),
    element('span.number', {role: 'gridcell'}, formatSeconds(seconds)),
    element('span.number', {role: 'gridcell'}, data.iteration_seconds > 0 ? formatPercent(seconds / data.iteration_seconds) : ''),
    element('span.faint', {role: 'gridcell'}, scope.longest_rank < 0 ? '' : `most: rank ${scope.longest_rank}`));
  }

  function setOpen(index, open, node) {
    if (inner[index].length > 0) isOpen[index] = open;
    draw(node);
  }

  function draw(node) {
    const tree = element('div.tree', {'role': 'treegrid', 'aria-label': 'Measurements'});
    const indices = visible();
    tree.append(...indices.map(index => rowElement(index, node)));
    tree.addEventListener('keydown', event => {
      const at = [...tree.children].indexOf(document.activeElement);
      if (at < 0) return;
      const index = indices[at];
      if (event.key === 'ArrowDown' && at + 1 < indices.length) tree.children[at + 1].focus();
      else if (event.key === 'ArrowUp' && at > 0) tree.children[at - 1].focus();
      else if (event.key === 'ArrowRight') setOpen(index, true, node);
      else if (event.key === 'ArrowLeft') setOpen(index, false, node);
      else if (event.key === 'Enter' || event.key === ' ') toggle({measurement: scopes[index].name});
      else return;
      event.preventDefault();
      const now = node.querySelector('.tree');
      if (now !== tree) now.children[at].focus();
    });
    if (tree.firstChild) tree.firstChild.tabIndex = 0;
    node.replaceChildren(tree, legend([['work', 'work'], ['waiting', 'waiting for others (collective)'], ['total', 'this library']]));
    return {marks: []};
  }

  addFigure({
    id: 'time_tree',
    title: 'Where the time goes',
    caption: 'Seconds of an iteration, mean of all ranks, or of the rank that is selected: then a stroke marks the mean. ' +
        `An iteration takes ${formatSeconds(data.iteration_seconds)}. A row opens by its arrow, or the arrow keys.`,
    plain: true,
    draw,
    table: () => ({
      columns: ['measurement', 'inside of', 'collective', 'ranks', 'seconds', 'own seconds', 'times an iteration', 'longest s', 'on rank'],
      rows: scopes.map(scope => [scope.name, scope.parent < 0 ? '' : scopes[scope.parent].name, scope.collective ? 'yes' : 'no',
        scope.ranks, scope.seconds, scope.own_seconds, scope.per_iteration, scope.longest, scope.longest_rank]),
    }),
  });
}

adders.push(addTimeTree);
