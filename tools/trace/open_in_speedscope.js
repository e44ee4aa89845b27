// open_in_speedscope.js NODE_MODULES TRACE [PICTURE.png [HEIGHT]]: opens a trace in speedscope, in a headless Chromium,
// and prints the names of the profiles it shows, a thread each, one a line. PICTURE gets the upper HEIGHT pixels of each,
// one below the other. Fails with what speedscope complains about. CHROMIUM: another browser than /usr/bin/chromium.

'use strict';

const fs = require('fs');
const http = require('http');
const path = require('path');

const width = 1400;
const [modules, trace, picture, height = '300'] = process.argv.slice(2);
const {chromium} = require(path.resolve(modules, 'playwright-core'));
const root = path.resolve(modules, 'speedscope/dist/release');
const types = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css'};

function serve(request, response) {
  const name = path.normalize(new URL(request.url, 'http://localhost').pathname);
  const file = name === '/trace' ? trace : path.join(root, name);
  fs.readFile(file, (error, bytes) => {
    response.writeHead(error ? 404 : 200, {'Content-Type': types[path.extname(file)] || 'application/octet-stream'});
    response.end(error ? undefined : bytes);
  });
}

// "rank 0 (host) (pid 0), main (tid 42)", the number of the profile and how many there are.
async function shownProfile(page) {
  const match = /^(.*) \((\d+)\/(\d+)\)$/m.exec(await page.evaluate(() => document.body.innerText));
  return match && {name: match[1], number: Number(match[2]), count: Number(match[3])};
}

async function showTrace(browser, port) {
  const page = await browser.newPage({viewport: {width, height: Number(height)}});
  const complaints = [];
  page.on('pageerror', error => complaints.push(String(error)));
  page.on('console', message => message.type() === 'error' && complaints.push(message.text()));
  // It tells in a dialog what it cannot read.
  const refusal = new Promise((resolve, reject) => page.on('dialog', dialog => {
    dialog.dismiss();
    reject(new Error(dialog.message()));
  }));
  refusal.catch(() => {});  // it may come before somebody waits for it
  await page.goto(`http://127.0.0.1:${port}/index.html#profileURL=http://127.0.0.1:${port}/trace`);
  await Promise.race([refusal, page.waitForFunction(() => /\(1\/\d+\)$|went wrong/m.test(document.body.innerText))]);
  const pictures = [];
  for (let profile = await shownProfile(page); profile; profile = await shownProfile(page)) {
    console.log(profile.name);
    pictures.push(await page.screenshot());
    if (profile.number === profile.count) break;
    await page.keyboard.press('n');
    await page.waitForFunction(next => document.body.innerText.includes(`(${next}/`), profile.number + 1);
  }
  if (pictures.length === 0) complaints.push(await page.evaluate(() => document.body.innerText));
  if (complaints.length > 0) throw new Error(complaints.join('\n'));
  return pictures;
}

async function stack(browser, pictures) {
  const page = await browser.newPage({viewport: {width, height: pictures.length * Number(height)}});
  const images = pictures.map(bytes => `<img style="display:block" src="data:image/png;base64,${bytes.toString('base64')}">`);
  await page.setContent(`<body style="margin:0">${images.join('')}</body>`);
  await page.screenshot({path: picture});
}

async function main(port) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--use-gl=swiftshader', '--enable-unsafe-swiftshader'],
  });
  try {
    const pictures = await showTrace(browser, port);
    if (picture) await stack(browser, pictures);
  } finally {
    await browser.close();
  }
}

const server = http.createServer(serve).listen(0, '127.0.0.1', () => {
  main(server.address().port)
      .catch(error => {
        console.error(`speedscope cannot show ${trace}: ${error.message}`);
        process.exitCode = 1;
      })
      .finally(() => server.close());
});
