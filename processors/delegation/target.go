package delegation

import (
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/internal/rows/delegationrow"
)

// peerMark begins the target of a task for a peer: "peer:{id}" or "peer:{id}/{agent}".
const peerMark = "peer:"

// maxTarget is the largest part of the target of a peer, in bytes.
const maxTarget = 128

// isTarget reports whether tasks can be delegated to a target. Only the group of package peer knows which peers there are.
func (t *transition) isTarget(target string) bool {
	rest, peer := strings.CutPrefix(target, peerMark)
	if !peer {
		_, ok := t.agents[target]
		return ok
	}
	id, agent, given := strings.Cut(rest, "/")
	return t.config.Peers && isName(id) && (!given || isName(agent))
}

// isName reports whether a text can be the ID of a peer or an agent of it. It is shown to models, so it must not be a sentence.
func isName(text string) bool {
	return text != "" && len(text) <= maxTarget && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
	})
}

// targets lists the targets for an error text.
func (t *transition) targets() string {
	names := slices.Clone(t.config.Agents)
	if t.config.Peers {
		names = append(names, peerMark+"{id}")
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// toPeer reports whether the task of a delegation is for a peer.
func toPeer(x *delegationrow.Task) bool { return strings.HasPrefix(x.Target, peerMark) }

// peerOf returns the ID of the peer, and its agent, empty for its default agent.
func peerOf(x *delegationrow.Task) (id, agent string) {
	id, agent, _ = strings.Cut(strings.TrimPrefix(x.Target, peerMark), "/")
	return id, agent
}
