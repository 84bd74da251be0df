// The official parser accepts topics/asyncapi.json and the schemas that it refers to. That the examples are valid is a test in Go.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { Parser } from '@asyncapi/parser'

const source = fileURLToPath(new URL('../../../topics/asyncapi.json', import.meta.url))

async function parse (text) {
  const { document, diagnostics } = await new Parser().parse(text, { source })
  // Errors and warnings. That there is a version 3.1 is neither.
  return { document, found: diagnostics.filter(d => d.severity < 2).map(d => `${d.path.join('.')}: ${d.message}`) }
}

test('the document is valid', async () => {
  const { document, found } = await parse(await readFile(source, 'utf8'))
  assert.deepEqual(found, [])
  assert.equal(document.version(), '3.0.0')
  assert.ok(document.channels().all().length > 40)
  const control = document.channels().get('session-control').messages().all()[0]
  assert.deepEqual(control.payload().required(), ['action'])
})

test('a document with a mistake is not', async () => {
  const broken = JSON.parse(await readFile(source, 'utf8'))
  broken.components.messages['session-control'].payload = { type: 'text' }
  const { found } = await parse(JSON.stringify(broken))
  assert.match(found.join(), /session-control/)
})
