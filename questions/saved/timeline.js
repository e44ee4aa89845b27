// Draws what ranks did when, in an iteration.

function addTimeline() {
  const data = pictures.timeline;
  if (!data || data.iterations.length === 0) return;
  const {names, iterations} = data;
  let chosen = 0;
  let zoom = null;  // nanoseconds from and to

  const choice = element('select', {'aria-label': 'Iteration', change() { chosen = Number(choice.value); zoom = null; redrawAll(); }},
      ...iterations.map((iteration, index) => element('option', {value: index},
          `${data.of} ${iteration.iteration} (${formatSeconds(lengthOf(iteration) * 1e-9)})`)));
  const reset = element('button', {type: 'button', hidden: true, click() { zoom = null; redrawAll(); }}, 'All of it');

  // [name, depth, start, duration] of each interval.
  function spansOf(rank) {
    return rank.start.map((start, index) => [rank.name[index], rank.depth[index], start, rank.duration[index]]);
  }

  function lengthOf(iteration) {
    return Math.max(...iteration.ranks.map(rank => rank.end));
  }

  // The first one in the span that others selected.
  function followSpan() {
    if (selection.first === null) return;
    const index = iterations.findIndex(({iteration}) => isInSpan(iteration, iteration));
    if (index >= 0 && !isInSpan(iterations[chosen].iteration, iterations[chosen].iteration)) [chosen, zoom] = [index, null];
  }

  function draw(node, width) {
    followSpan();
    choice.value = String(chosen);
    reset.hidden = zoom === null;
    const {ranks} = iterations[chosen];
    const margin = {left: 64, right: 16, top: 4, bottom: 26};
    const inner = width - margin.left - margin.right;
    const laneHeight = Math.max(12, Math.min(30, 420 / ranks.length));
    const height = laneHeight * ranks.length;
    const group = addSvg(node, width, height + margin.top + margin.bottom, margin);
    const x = d3.scaleLinear().domain(zoom || [0, lengthOf(iterations[chosen])]).range([0, inner]).clamp(true);
    addXAxis(group, {x, innerWidth: inner, innerHeight: height, formatX: time => formatSeconds(time * 1e-9)});
    const marks = [];
    const colors = names.map(({name, collective}) => colorOf(meaningOf(name, collective)));
    ranks.forEach((rank, lane) => {
      const top = lane * laneHeight;
      const isSelected = selection.rank === rank.rank;
      group.append('text').attr('x', -6).attr('y', top + laneHeight / 2 + 4).attr('text-anchor', 'end')
          .attr('font-weight', isSelected ? 700 : 400).text(`rank ${rank.rank}`);
      group.append('rect').attr('class', 'iteration').attr('x', x(rank.begin)).attr('width', Math.max(0, x(rank.end) - x(rank.begin)))
          .attr('y', top + 1).attr('height', laneHeight - 2).attr('fill', colorOf('panel'))
          .attr('stroke', isSelected ? colorOf('selected') : colorOf('line'));
      for (const [name, depth, start, duration] of spansOf(rank)) {
        if (start + duration < x.domain()[0] || start > x.domain()[1]) continue;
        const inset = Math.min(depth, 3) * laneHeight / 8;
        const left = x(start);
        const long = Math.max(0.75, x(start + duration) - left);
        const tall = laneHeight - 4 - 2 * inset;
        const {name: text, collective} = names[name];
        const isFaded = selection.measurement !== null && selection.measurement !== text;
        group.append('rect').attr('class', 'interval').attr('data-name', text).attr('data-rank', rank.rank).attr('x', left).attr('width', long)
            .attr('y', top + 2 + inset).attr('height', tall).attr('fill', colors[name]).attr('fill-opacity', isFaded ? 0.2 : 0.9 - 0.15 * (depth % 3))
            .attr('stroke', colorOf('page')).attr('stroke-width', long > 3 ? 0.5 : 0);
        const label = long > 24 && tall > 10 && !isFaded ? fit(text, long - 4) : '';
        if (label) group.append('text').attr('x', left + 3).attr('y', top + laneHeight / 2 + 4).style('fill', inkOn(colors[name])).text(label);
        marks.push({
          x: margin.left + left + long / 2, y: margin.top + top + laneHeight / 2,
          box: [margin.left + left, margin.left + left + long, margin.top + top, margin.top + top + laneHeight, depth],
          label: `rank ${rank.rank}, ${text}${collective ? ' (waiting for others)' : ''}\n` +
              `${formatSeconds(duration * 1e-9)}, from ${formatSeconds(start * 1e-9)} on`,
          select: {rank: rank.rank, measurement: text},
        });
      }
    });
    return {
      marks,
      // The innermost that lies there.
      locate(placeX, placeY) {
        let best = -1;
        marks.forEach(({box: [left, right, top, bottom, depth]}, index) => {
          const isInside = placeX >= left - 1 && placeX <= right + 1 && placeY >= top && placeY <= bottom;
          if (isInside && (best < 0 || depth >= marks[best].box[4])) best = index;
        });
        return best;
      },
      zoomTo(from, to) {
        const limits = [from, to].map(place => x.invert(Math.max(0, Math.min(inner, place - margin.left))));
        if (limits[1] - limits[0] > 100) zoom = limits;
        redrawAll();
      },
    };
  }

  addFigure({
    id: 'timeline',
    title: 'Timeline',
    caption: data.of === 'step' ? 'What the device of each rank does in one step, on one clock. Drag to look closer.' :
        'Measurements of each rank in one iteration, on one clock. Drag to look closer. The longest that were kept are among the choice.',
    controls: [choice, reset],
    draw(node, width) {
      const result = draw(node, width);
      node.append(legend([['work', 'work'], ['waiting', 'waiting for others (collective)'], ['total', 'this library']]));
      return result;
    },
    table: () => ({
      columns: [data.of, 'rank', 'measurement', 'collective', 'depth', 'start ns', 'duration ns'],
      rows: iterations.flatMap(iteration => iteration.ranks.flatMap(rank => spansOf(rank).map(([name, depth, start, duration]) =>
        [iteration.iteration, rank.rank, names[name].name, names[name].collective ? 'yes' : 'no', depth, start, duration]))),
    }),
  });
}

adders.push(addTimeline);
