// screenshot.js NODE_MODULES PAGE PICTURE.png [FIGURE]: a page of `ott report` in a headless Chromium as a picture: its upper
// part, or one figure of it. CHROMIUM: another browser than /usr/bin/chromium.

'use strict';

const path = require('path');

const [modules, file, picture, figure] = process.argv.slice(2);
const {chromium} = require(path.resolve(modules, 'playwright-core'));

async function main() {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
  try {
    const page = await browser.newPage({viewport: {width: 1000, height: 1150}});
    await page.goto(`file://${path.resolve(file)}`);
    if (!figure) {
      await page.screenshot({path: picture});
      return;
    }
    const node = await page.$(`figure#${figure}`);
    if (!node) throw new Error(`${file} has no picture ${figure}`);
    await page.addStyleTag({content: 'figure { border-color: transparent } #details { visibility: hidden } figure > details, figure button { display: none }'});
    await node.scrollIntoViewIfNeeded();
    const box = await node.boundingBox();
    await page.screenshot({path: picture, clip: {x: 0, y: box.y, width: 1000, height: box.height + 8}});
  } finally {
    await browser.close();
  }
}

main().catch(error => {
  console.error(`screenshot.js: ${error.message}`);
  process.exitCode = 1;
});
