package peer

import (
	"fmt"
	"strconv"

	"github.com/turntable-streams/turntable/topics"
)

// Kind is what is wrong with an audit.
type Kind string

// The kinds of findings. Verify reports all but Contradiction, and Stitch reports Missing, Repeated, Reordered and
// Contradiction.
const (
	// Missing: a record is not there.
	Missing Kind = "missing"
	// Repeated: the record is there twice.
	Repeated Kind = "repeated"
	// Reordered: the record is not at its place.
	Reordered Kind = "reordered"
	// Altered: the record does not have the hash that it states.
	Altered Kind = "altered"
	// Unlinked: the record does not follow the record before it, or the head is not that of the last record. One of both was
	// replaced.
	Unlinked Kind = "unlinked"
	// Forked: two different records have the same number.
	Forked Kind = "forked"
	// Foreign: the record was written by another instance.
	Foreign Kind = "foreign"
	// Unreadable: the record has another version than this package knows, so that its hash cannot be checked.
	Unreadable Kind = "unreadable"
	// Contradiction: the two halves of a task state different facts.
	Contradiction Kind = "contradiction"
)

// Finding is one thing that is wrong with an audit.
type Finding struct {
	Kind Kind
	// InstanceID is the instance whose records are concerned.
	InstanceID string
	// Seq is the number of the record in the chain, 0 if the finding is about no record.
	Seq int64
	// TaskID and Event are those of the record that is concerned, also if it is missing. They are empty where they are not
	// known.
	TaskID string
	Event  topics.PeerEvent
	// Text says in English what is wrong. It has no contents of tasks.
	Text string
}

// String returns the finding as one line.
func (f Finding) String() string {
	s := fmt.Sprintf("%s: instance %q", f.Kind, f.InstanceID)
	if f.Seq != 0 {
		s += ", record " + strconv.FormatInt(f.Seq, 10)
	}
	if f.TaskID != "" {
		s += fmt.Sprintf(", task %q", f.TaskID)
	}
	if f.Event != "" {
		s += ", " + string(f.Event)
	}
	return s + ": " + f.Text
}

// about returns a finding about a record.
func about(r topics.PeerAudit, kind Kind, text string) Finding {
	return Finding{Kind: kind, InstanceID: r.InstanceID, Seq: r.Seq, TaskID: r.TaskID, Event: r.Event, Text: text}
}
