// Package peerwire has the bodies of a delegation between two instances: the request, the reply, the agent card and errors, and
// what is derived from them. It does no I/O.
//
//	GET  /.well-known/hybridclaw-peer.json   Card
//	POST /api/peer/delegate                  Request; Reply or Refusal
//
// Bodies are those of HybridClaw's peers, with additions that it ignores: hopCount, instanceChain and callback in
// a request, idempotent, async and cancel in a card, code in an error. Readers accept what JavaScript accepts: of duplicate members the last one counts, unknown
// members are ignored, and text that is not valid Unicode is replaced, except in a task ID, which identifies work. Bodies are
// bounded in size and depth. Lengths are in UTF-16 code units, as JavaScript counts them.
//
// Text from a peer is data. ForModel bounds and marks it, so that a model can tell it from instructions.
package peerwire
