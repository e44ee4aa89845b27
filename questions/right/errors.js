// Draws how the errors against the reference grow, tensor by tensor.

function addErrors() {
  const data = pictures.errors;
  if (!data || data.tensors.length === 0) return;
  const {iterations, tensors} = data;
  const isBeyond = pictures.checks && pictures.checks.series.some(({subject, checks}) =>
      subject === 'reference' && checks.some(check => check.outcome === 'DIFFERENT'));
  const firstMeaning = isBeyond ? 'bad' : 'tolerance';

  // Labels as near to their lines' ends as they can be, none on another: groups of neighbours, each around the middle of its ends.
  function spreadLabels(ends) {
    const lineHeight = 14;
    const groups = [];
    for (const end of [...ends].sort((a, b) => a.y - b.y)) {
      groups.push({members: [end], middle: end.y});
      for (let last = groups.length - 1; last > 0; --last) {
        const [above, below] = [groups[last - 1], groups[last]];
        if (below.middle - above.middle >= (above.members.length + below.members.length) / 2 * lineHeight) break;
        const members = [...above.members, ...below.members];
        groups.splice(last - 1, 2, {members, middle: d3.mean(members, member => member.y)});
      }
    }
    return groups.flatMap(({members, middle}) => members.map((member, index) =>
        ({...member, label: middle + (index - (members.length - 1) / 2) * lineHeight})));
  }

  function draw(node, width) {
    const margin = {left: 70, right: Math.min(width * 0.3, Math.max(...tensors.map(tensor => textWidth(tensor.name))) + 30), top: 8, bottom: 30};
    const height = 220;
    const inner = width - margin.left - margin.right;
    const group = addSvg(node, width, height + margin.top + margin.bottom, margin);
    const positive = tensors.flatMap(tensor => tensor.max_abs_error.filter(error => error > 0));
    const x = d3.scaleLinear().domain([iterations[0], iterations[iterations.length - 1] + 1]).range([0, inner]);
    // Equal bit for bit lies at the bottom, below the smallest error.
    const y = d3.scaleLog().domain(positive.length > 0 ? [d3.min(positive) / 3, d3.max(positive) * 1.5] : [1e-9, 1]).range([height - 14, 0]);
    const place = error => error > 0 ? y(error) : height;
    addXAxis(group, {x, innerWidth: inner, innerHeight: height, formatX: formatIteration});
    group.append('g').attr('class', 'axis').call(d3.axisLeft(y).ticks(5, '.0e').tickSizeOuter(0));
    group.append('text').attr('class', 'faint').attr('x', -8).attr('y', height + 4).attr('text-anchor', 'end').text('equal');
    const marks = [];
    const ends = [];
    tensors.forEach((tensor, index) => {
      const points = iterations.map((iteration, i) => ({iteration, error: tensor.max_abs_error[i]}));
      const isSelected = selection.measurement === tensor.name;
      const color = colorOf(isSelected ? 'selected' : index === 0 ? firstMeaning : 'total');
      const known = points.filter(point => point.error !== null);
      group.append('path').attr('class', 'error').attr('data-tensor', tensor.name).attr('fill', 'none').attr('stroke', color)
          .attr('stroke-width', isSelected || index === 0 ? 2.5 : 1.2)
          .attr('d', d3.line().defined(point => point.error !== null).x(point => x(point.iteration)).y(point => place(point.error))(points));
      for (const point of known) {
        marks.push({
          x: margin.left + x(point.iteration), y: margin.top + place(point.error),
          label: `${tensor.name}, iteration ${point.iteration}\n` +
              (point.error > 0 ? `max abs error ${formatNumber(point.error)}` : 'equal bit for bit') + `, differs from iteration ${tensor.first} on`,
          select: {measurement: tensor.name, first: tensor.first, last: tensor.first},
        });
      }
      if (known.length > 0) ends.push({tensor, color, y: place(known[known.length - 1].error)});
    });
    for (const {tensor, color, y: end, label} of spreadLabels(ends)) {
      group.append('path').attr('fill', 'none').attr('stroke', colorOf('faint')).attr('stroke-width', 0.5).attr('d', `M${inner + 2},${end}L${inner + 18},${label}`);
      group.append('text').attr('x', inner + 22).attr('y', label + 4).style('fill', color).text(fit(tensor.name, margin.right - 24));
    }
    shadeSpan(group, x, height);
    return {marks};
  }

  addFigure({
    id: 'errors',
    title: 'Errors against the reference',
    caption: 'The largest absolute error of each tensor over all ranks, on a log scale; the tensor that differs first is drawn strong.',
    draw,
    table: () => ({
      columns: ['tensor', 'differs from iteration', 'iteration', 'max abs error'],
      rows: tensors.flatMap(tensor => iterations.map((iteration, i) => [tensor.name, tensor.first, iteration, tensor.max_abs_error[i]])),
    }),
  });
}

adders.push(addErrors);
