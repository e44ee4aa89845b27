// Draws how long iterations took over time, with the outliers.

function addIterations() {
  const data = pictures.iterations;
  if (!data || data.columns.length === 0) return;
  const {columns, outliers} = data;

  function draw(node, width) {
    const margin = {left: 80, right: 16, top: 8, bottom: 36};
    const inner = width - margin.left - margin.right;
    const height = 200;
    const group = addSvg(node, width, height + margin.top + margin.bottom, margin);
    const x = iterationScale(columns, inner);
    const longest = d3.max([...columns.map(column => column.longest), ...outliers.map(outlier => outlier.seconds)]);
    const shortest = d3.min(columns, column => column.shortest);
    const isLog = longest > 8 * d3.median(columns, column => column.mean) && shortest > 0;
    const y = (isLog ? d3.scaleLog().domain([shortest, longest]) : d3.scaleLinear().domain([0, longest])).range([height, 0]).nice();
    addXAxis(group, {x, innerWidth: inner, innerHeight: height, formatX: formatIteration});
    const yAxis = isLog ? d3.axisLeft(y).ticks(4, formatSeconds) : d3.axisLeft(y).ticks(5).tickFormat(formatSeconds);
    group.append('g').attr('class', 'axis').call(yAxis.tickSizeOuter(0));
    group.append('text').attr('class', 'faint').attr('x', inner).attr('y', height + 32).attr('text-anchor', 'end')
        .text(isLog ? 'iteration; seconds on a log scale' : 'iteration');
    const middle = column => x((column.first + column.last + 1) / 2);
    const known = column => column.mean !== null;
    group.append('path').attr('class', 'range').attr('fill', colorOf('total')).attr('fill-opacity', 0.25).attr('d',
        d3.area().defined(known).x(middle).y0(column => y(column.shortest)).y1(column => y(column.longest))(columns));
    group.append('path').attr('class', 'mean').attr('fill', 'none').attr('stroke', colorOf('total')).attr('stroke-width', 1.5)
        .attr('d', d3.line().defined(known).x(middle).y(column => y(column.mean))(columns));
    if (data.outlier_limit > 0 && data.outlier_limit < y.domain()[1]) {
      group.append('line').attr('class', 'limit').attr('x2', inner).attr('y1', y(data.outlier_limit)).attr('y2', y(data.outlier_limit))
          .attr('stroke', colorOf('bad')).attr('stroke-dasharray', '4 4');
    }
    group.selectAll('circle.outlier').data(outliers).join('circle').attr('class', 'outlier').attr('r', 4)
        .attr('cx', outlier => x(outlier.iteration + 0.5)).attr('cy', outlier => y(outlier.seconds))
        .attr('fill', outlier => selection.rank === null || selection.rank === outlier.rank ? colorOf('bad') : 'none')
        .attr('stroke', colorOf('bad'));
    drawWorkOfSelected(group, x, y);
    shadeSpan(group, x, height);
    const marks = [
      ...columns.filter(known).map(column => ({
        x: margin.left + middle(column),
        y: margin.top + y(column.mean),
        label: `${formatIterations(column.first, column.last)}: mean ${formatSeconds(column.mean)}\n` +
            `of all ranks ${formatSeconds(column.shortest)} to ${formatSeconds(column.longest)}`,
        select: {first: column.first, last: column.last},
      })),
      ...outliers.map(outlier => ({
        x: margin.left + x(outlier.iteration + 0.5),
        y: margin.top + y(outlier.seconds),
        label: `outlier: iteration ${outlier.iteration} took ${formatSeconds(outlier.seconds)}` + (outlier.rank < 0 ? '' :
            `\nmost work: rank ${outlier.rank}, ${formatSeconds(outlier.work_seconds)}`),
        select: {rank: outlier.rank < 0 ? null : outlier.rank, first: outlier.iteration, last: outlier.iteration},
      })),
    ];
    return {marks, span: place => columns[columnAt(columns, x, place - margin.left)]};
  }

  // Draws the work of the selected rank; the rest of an iteration it waited.
  function drawWorkOfSelected(group, x, y) {
    const row = rowOfRank(selection.rank);
    if (row < 0) return;
    const points = columns.map((column, index) => [x((column.first + column.last + 1) / 2), cellSeconds('work', row, index)]);
    group.append('path').attr('class', 'selected-work').attr('fill', 'none').attr('stroke', colorOf('work')).attr('stroke-width', 2)
        .attr('d', d3.line().defined(point => point[1] !== null && point[1] > 0)
            .x(point => point[0]).y(point => y(Math.max(point[1], y.domain()[0])))(points));
  }

  addFigure({
    id: 'iterations',
    title: 'Iterations over time',
    caption: 'The line is the mean of all ranks, the band reaches from the shortest to the longest. Outliers are longer than ' +
        `${formatSeconds(data.outlier_limit)}: ${data.num_outliers} of them. The work of a rank that is selected is drawn too. ` +
        'Drag to select iterations in all pictures.',
    draw(node, width) {
      const result = draw(node, width);
      node.append(legend([['total', 'iteration, all ranks'], ['bad', 'outlier'], ['work', 'work of the selected rank']]));
      return result;
    },
    table: () => ({
      columns: ['first iteration', 'last iteration', 'shortest s', 'mean s', 'longest s', 'outlier', 'rank with most work', 'its work s'],
      rows: [
        ...columns.map(column => [column.first, column.last, column.shortest, column.mean, column.longest, '', '', '']),
        ...outliers.map(outlier => [outlier.iteration, outlier.iteration, '', '', outlier.seconds, 'yes', outlier.rank, outlier.work_seconds]),
      ],
    }),
  });
}

adders.push(addIterations);
