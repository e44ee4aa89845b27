// Draws who comes last to a collective, and how late.

function addArrivals() {
  const data = pictures.arrivals;
  if (!data || data.collectives.length === 0) return;
  const nameOf = collective => collective.group ? `${collective.name} of group ${collective.group}` : collective.name;

  // One row for what all wait, then one for each rank that comes last.
  function rows() {
    return data.collectives.flatMap(collective => [
      {
        label: nameOf(collective),
        isHeading: true,
        parts: [{value: collective.mean_wait, meaning: 'waiting'}],
        text: `${formatSeconds(collective.mean_wait)} waiting`,
        title: `${nameOf(collective)}: a rank waits ${formatSeconds(collective.mean_wait)} in the mean, at most ` +
            `${formatSeconds(collective.max_wait)}; ${collective.num_intervals} times that all ${collective.num_ranks} ranks came` +
            (collective.num_incomplete > 0 ? `, ${collective.num_incomplete} times not all` : ''),
        select: {measurement: collective.name},
      },
      ...collective.last.map(last => {
        const holdUp = collective.hold_up && collective.hold_up.rank === last.rank ? collective.hold_up : null;
        // Traces have no interval.
        const hasInterval = holdUp && holdUp.seconds_high > 0;
        const interval = hasInterval ? ` (95 %: ${formatSeconds(holdUp.seconds_low)} to ${formatSeconds(holdUp.seconds_high)})` : '';
        const late = last.after_next === 0 ? '' : `, ${formatSeconds(last.after_next)} after the next to last`;
        return {
          label: `last: ${formatRank(last.rank, last.host)}`,
          parts: [{value: last.after_next || (holdUp ? holdUp.seconds_per_iteration : 0), meaning: holdUp ? 'bad' : 'total'}],
          low: hasInterval ? holdUp.seconds_low : null,
          high: hasInterval ? holdUp.seconds_high : null,
          text: `${last.num_intervals} of ${collective.num_intervals}`,
          title: `${formatRank(last.rank, last.host)} came last to ${nameOf(collective)} ${last.num_intervals} of ${collective.num_intervals} times${late}` +
              (holdUp ? `\nall wait for it: ${formatSeconds(holdUp.seconds_per_iteration)} an iteration${interval}, ${formatPercent(holdUp.share_of_iteration)} of it` : ''),
          select: {rank: last.rank},
        };
      }),
      ...collective.hiccups.map(hiccup => ({
        label: `${hiccup.is_pause ? 'pause' : 'hiccups'}: ${formatRank(hiccup.rank, hiccup.host)}`,
        parts: [{value: hiccup.seconds / Math.max(1, hiccup.num_hiccups), meaning: hiccup.is_pause ? 'total' : 'bad'}],
        text: `${hiccup.num_hiccups} times`,
        title: `${formatRank(hiccup.rank, hiccup.host)} was late ${hiccup.num_hiccups} times, ${formatSeconds(hiccup.seconds)} in sum, in iterations ` +
            hiccup.iterations.join(', '),
        select: {rank: hiccup.rank, first: hiccup.iterations[0], last: hiccup.iterations[hiccup.iterations.length - 1]},
      })),
    ]);
  }

  addFigure({
    id: 'arrivals',
    title: 'Who comes last to a collective',
    caption: 'For each collective, how long a rank waits there; below it, the ranks that come last, how late after the next to last, ' +
        'and how often. Stroke: the 95 % interval of what all wait for that rank in an iteration.',
    draw(node, width) {
      const all = rows();
      const result = drawBars(node, width, all, {formatX: formatSeconds,
        maximum: Math.max(1e-9, ...all.map(row => Math.max(row.parts[0].value, row.high || 0)))});
      node.append(legend([['waiting', 'mean waiting of a rank'], ['bad', 'holds the others up'], ['total', 'came last, by no more than chance']]));
      return result;
    },
    table: () => ({
      columns: ['collective', 'group', 'rank', 'host', 'came last', 'of', 'after the next s', 'mean wait s', 'longest wait s', 'holds up s an iteration', 'low', 'high'],
      rows: data.collectives.flatMap(collective => [
        [collective.name, collective.group, '', '', '', collective.num_intervals, '', collective.mean_wait, collective.max_wait, '', '', ''],
        ...collective.last.map(last => {
          const holdUp = collective.hold_up && collective.hold_up.rank === last.rank ? collective.hold_up : {};
          return [collective.name, collective.group, last.rank, last.host, last.num_intervals, collective.num_intervals, last.after_next,
            '', '', holdUp.seconds_per_iteration, holdUp.seconds_low, holdUp.seconds_high];
        }),
      ]),
    }),
  });
}

adders.push(addArrivals);
