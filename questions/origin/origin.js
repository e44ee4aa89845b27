// The operation that first computed something else, and how its difference spreads.

function addOrigin() {
  const data = pictures.origin;
  if (!data) return;
  const nameOf = step => step.module ? `${step.operation} (${step.module})` : step.operation;
  const steps = [];

  // A step, and below it those that read its output.
  function append(step, index, from) {
    const at = steps.length;
    steps.push({...step, from});
    data.spread.forEach((next, position) => next.parent === index && append(next, position, at));
  }
  append({...data, depth: 0}, -1, -1);

  // null is what JSON has for infinite.
  const formatDifference = difference => difference === null ? 'NaN or infinities' : difference === 0 ? 'equal' : String(Number(difference.toPrecision(2)));
  const formatTick = value => value < 1e-3 || value >= 1000 ? d3.format('.0e')(value) : String(Number(value.toPrecision(1)));
  const isSwallowed = step => step.from >= 0 && step.relative_difference === 0;
  const meaningOfStep = step => step.from < 0 ? 'bad' : isSwallowed(step) ? 'good' : 'total';

  function describe(step) {
    const {input_difference: input, relative_difference: difference} = step;
    const change = step.from < 0 || input === null || difference === null ? '' : difference === 0 ? ': swallowed' :
        difference > 2 * input ? ': grows' : difference < input / 2 ? ': shrinks' : '';
    return `${nameOf(step)}, iteration ${step.iteration}` + (step.from < 0 && step.source ? `, ${step.source}` : '') +
        `\ninputs ${formatDifference(input)}, output ${formatDifference(difference)}${change}`;
  }

  function selectionOf(step) {
    return {rank: data.ranks[0], first: step.iteration, last: step.iteration,
      ...(isMeasurement(step.operation) ? {measurement: step.operation} : {})};
  }

  // From 0, "equal", to the right.
  function scaleOf(differences, length) {
    const known = differences.filter(difference => difference > 0 && difference < 1e29);
    const log = d3.scaleLog().domain(known.length > 0 ? [d3.min(known) / 2, Math.max(d3.max(known) * 1.2, d3.min(known))] : [1e-9, 1])
        .range([24, length]);
    return {log, place: difference => difference === null || difference >= 1e29 ? length : difference > 0 ? log(difference) : 0};
  }

  function drawLog(group, inner, height, margin, marks) {
    const {log: y, place} = scaleOf(data.differences, height);
    const long = inner / data.differences.length;
    group.append('g').attr('class', 'axis').call(d3.axisLeft(d3.scaleLog().domain(y.domain()).range([height - 24, 0])).ticks(3, formatTick).tickSizeOuter(0));
    group.append('line').attr('x2', inner).attr('y1', height).attr('y2', height).attr('stroke', colorOf('line'));
    group.append('text').attr('class', 'faint').attr('y', height + 15).text('start of the log');
    group.append('text').attr('class', 'faint').attr('x', inner).attr('y', height + 15).attr('text-anchor', 'end').text('end');
    data.differences.forEach((difference, part) => {
      const isOrigin = part === data.origin_part;
      const tall = place(difference);
      const meaning = isOrigin ? 'bad' : part < data.origin_part ? 'tolerance' : 'total';
      group.append('rect').attr('class', 'part').attr('data-part', part).attr('x', part * long).attr('width', Math.max(1, long - (long > 4 ? 1 : 0)))
          .attr('y', height - tall).attr('height', tall).attr('fill', colorOf(meaning));
      if (isOrigin) {
        group.append('text').attr('x', (part + 0.5) * long).attr('y', height - tall - 4).attr('text-anchor', 'middle').style('fill', colorOf('bad')).text('\u25bc');
      }
      marks.push({x: margin.left + (part + 0.5) * long, y: margin.top + height - tall / 2,
        label: `part ${part + 1} of ${data.differences.length} of the log: ` +
            (difference === 0 ? 'all outputs are equal' : `outputs differ by ${formatDifference(difference < 1e29 ? difference : null)}`) +
            (isOrigin ? '\nhere it began' : '')});
    });
  }

  function drawSteps(node, inner, top, rowHeight, margin, marks) {
    const {log: x, place} = scaleOf(steps.flatMap(step => [step.input_difference, step.relative_difference]), inner);
    const indent = step => -margin.left + 8 + 14 * step.depth;
    const middle = index => (index + 0.5) * rowHeight;
    const group = node.append('g').attr('transform', `translate(0,${top})`);
    const height = steps.length * rowHeight;
    group.append('g').attr('class', 'axis').attr('transform', `translate(0,${height})`)
        .call(d3.axisBottom(x).ticks(Math.max(2, Math.floor(inner / 150)), formatTick).tickSizeOuter(0));
    group.append('text').attr('class', 'faint').attr('y', height + 17).attr('text-anchor', 'middle').text('equal');
    steps.forEach((step, index) => {
      const color = colorOf(meaningOfStep(step));
      const isFaded = !isInSpan(step.iteration, step.iteration) || (selection.rank !== null && !data.ranks.includes(selection.rank));
      const row = group.append('g').attr('class', 'step').attr('data-operation', step.operation).attr('opacity', isFaded ? 0.35 : 1);
      if (step.from >= 0) {
        row.append('path').attr('class', 'edge').attr('fill', 'none').attr('stroke', colorOf('faint'))
            .attr('d', `M${indent(steps[step.from]) + 4},${middle(step.from) + 7}V${middle(index)}H${indent(step) - 2}`);
      }
      row.append('text').attr('x', indent(step)).attr('y', middle(index) + 4)
          .attr('font-weight', step.from < 0 || selection.measurement === step.operation ? 700 : 400)
          .style('fill', step.from < 0 ? color : null).text(fit(nameOf(step), -indent(step) - 12));
      const [from, to] = [place(step.input_difference), place(step.relative_difference)];
      row.append('line').attr('x1', from).attr('x2', to).attr('y1', middle(index)).attr('y2', middle(index)).attr('stroke', color).attr('stroke-width', 2);
      row.append('circle').attr('class', 'input').attr('cx', from).attr('cy', middle(index)).attr('r', 4).attr('fill', colorOf('page'))
          .attr('stroke', color).attr('stroke-width', 1.5);
      row.append('circle').attr('class', 'output').attr('cx', to).attr('cy', middle(index)).attr('r', 5).attr('fill', color);
      if (margin.right > 60) {
        row.append('text').attr('class', 'faint').attr('x', inner + 10).attr('y', middle(index) + 4)
            .text(`${formatDifference(step.input_difference)} \u2192 ${formatDifference(step.relative_difference)}`);
      }
      marks.push({x: margin.left + to, y: margin.top + top + middle(index), label: describe(step), select: selectionOf(step)});
    });
  }

  function draw(node, width) {
    const names = Math.max(...steps.map(step => textWidth(nameOf(step), true) + 14 * step.depth)) + 24;
    const margin = {left: Math.min(width * 0.45, Math.max(64, names)), right: width > 600 ? 130 : 16, top: 18, bottom: 28};
    const inner = width - margin.left - margin.right;
    const [logHeight, rowHeight] = [72, 22];
    const top = logHeight + 40;
    const group = addSvg(node, width, margin.top + top + steps.length * rowHeight + margin.bottom, margin);
    const marks = [];
    drawSteps(group, inner, top, rowHeight, margin, marks);
    drawLog(group, inner, logHeight, margin, marks);
    node.append(legend([['bad', 'here it began'], ['total', 'differs for that reason'], ['good', 'swallowed'],
      ...(data.perturbed ? [['tolerance', 'explained by rounding']] : [])]));
    return {
      marks,
      locate(x, y) {
        const row = Math.floor((y - margin.top - top) / rowHeight);
        if (row >= 0 && row < steps.length) return row;
        const part = Math.floor((x - margin.left) / inner * data.differences.length);
        return y < margin.top + logHeight && part >= 0 && part < data.differences.length ? steps.length + part : -1;
      },
    };
  }

  const after = data.num_differ_after + data.num_swallow_after;
  addFigure({
    id: 'origin',
    title: 'Which operation made it, and how it spreads',
    caption: `Above, how far outputs of this run and of ${data.reference} are apart along the log of rank ${data.ranks[0]}, as a share of their norm. ` +
        'Below, the operation where it began, and under each operation those that read its output: hollow, how far its inputs are apart, filled, ' +
        `its output.` + (after > data.spread.length ? ` ${data.spread.length} of ${after} operations that it reaches.` : ''),
    draw,
    table: () => ({
      columns: ['place', 'operation', 'reads', 'iteration', 'inputs differ by', 'output differs by'],
      rows: [
        ...steps.map((step, index) => [index === 0 ? 'origin' : `${step.depth} after it`, nameOf(step),
          step.from < 0 ? '' : nameOf(steps[step.from]), step.iteration, step.input_difference, step.relative_difference]),
        ...data.differences.map((difference, part) => [`part ${part + 1} of ${data.differences.length} of the log`, '', '', '', '', difference]),
      ],
    }),
  });
}

adders.push(addOrigin);
