package auth

import (
	"errors"
	"fmt"
	"strings"
)

// Rights is a set of permissions in a session.
type Rights uint8

// The rights. A door documents which ones a request needs.
const (
	// Read permits reading the events of a session: streams, batches, sockets, and turns that are resumed.
	Read Rights = 1 << iota
	// Write permits sending messages to a session, which starts turns.
	Write
	// Answer permits sending what a turn waits for: results of client-side tools, and decisions on approvals.
	Answer
	// Control permits cancelling turns and purging sessions.
	Control

	// AllRights contains all rights.
	AllRights = Read | Write | Answer | Control
)

// ErrRights is wrapped by the errors of ParseRights.
var ErrRights = errors.New("auth: unusable rights")

var rightNames = []struct {
	right Rights
	name  string
}{{Read, "read"}, {Write, "write"}, {Answer, "answer"}, {Control, "control"}}

// ParseRights returns the rights with the given names: read, write, answer, control, or all. It fails for an unknown name,
// and without a name because the empty set would mean all rights. The error wraps ErrRights.
func ParseRights(names ...string) (Rights, error) {
	var set Rights
	for _, name := range names {
		r, ok := rightOf(name)
		if !ok {
			return 0, fmt.Errorf("%w: want names of read, write, answer, control or all", ErrRights)
		}
		set |= r
	}
	if set == 0 {
		return 0, fmt.Errorf("%w: none", ErrRights)
	}
	return set, nil
}

func rightOf(name string) (Rights, bool) {
	if name == "all" {
		return AllRights, true
	}
	for _, n := range rightNames {
		if n.name == name {
			return n.right, true
		}
	}
	return 0, false
}

// String returns the names of the rights, separated by commas. The zero value is "all".
func (r Rights) String() string {
	if r == 0 || r&AllRights == AllRights {
		return "all"
	}
	var names []string
	for _, n := range rightNames {
		if r&n.right != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, ",")
}
