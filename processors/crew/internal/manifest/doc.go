// Package manifest is what an agent is told about its crew: the manifest in its first prompt, a CREW_UPDATE when something has
// changed, and the answer to QUERY_CREW. The texts are pure functions of the roster and of who reads them.
//
// Refresh decides when a CREW_UPDATE is due: two seconds after the last change, at most ten seconds after the first. An agent
// that has lost its context gets one at once. All running agents get it. The agent's row drops one whose Digest is that of the
// last one it delivered: the digest leaves out times and activities, so that an agent is not woken for what it need not know.
package manifest
