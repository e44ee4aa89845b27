// Draws where the time of the devices goes.

function addDeviceTime() {
  const data = pictures.device_time;
  if (!data || data.ranks.length === 0) return;
  const kinds = [['compute', 'work', 'compute'], ['exposed_communication', 'waiting', 'communication that nothing hides'],
    ['exposed_copies', 'memory', 'copies that nothing hides'], ['idle', 'idle', 'idle']];
  addFigure({
    id: 'device_time',
    title: 'Where the time of the devices goes',
    caption: 'Of each moment the first of these counts that there is.',
    draw(node, width) {
      const result = drawBars(node, width, data.ranks.map(rank => ({
        label: `rank ${rank.rank}`,
        parts: kinds.map(([key, meaning]) => ({value: rank[key], meaning})),
        text: formatSeconds(rank.seconds),
        title: `rank ${rank.rank}\n` + kinds.map(([key, , name]) => `${name} ${formatSeconds(rank[key])}`).join('\n'),
        select: {rank: rank.rank},
      })), {formatX: formatSeconds, maximum: Math.max(...data.ranks.map(rank => rank.seconds))});
      node.append(legend(kinds.map(([, meaning, name]) => [meaning, name])));
      return result;
    },
    table: () => ({
      columns: ['rank', 'seconds', ...kinds.map(([, , name]) => `${name} s`)],
      rows: data.ranks.map(rank => [rank.rank, rank.seconds, ...kinds.map(([key]) => rank[key])]),
    }),
  });
}

adders.push(addDeviceTime);
