package peer

import (
	"fmt"
	"maps"
	"slices"

	"github.com/turntable-streams/turntable/topics"
)

// Half is the audit of one of two instances.
type Half struct {
	Chain Chain
	// PeerID is the label by which this instance sends tasks to the other one, and InboundID the label of the other one's
	// token. Records with another label concern other peers and are left out. Empty labels select all records.
	PeerID    string
	InboundID string
}

// Stitch pairs the records of two instances by task ID, in both directions, and returns gaps and contradictions, ordered by
// task ID; nothing for a complete audit. A task that is not finished yet has a gap. Both halves must cover the same time.
//
// A task is complete if the dispatcher wrote sent, and then acknowledged or send_failed, and the receiver wrote received, and
// then completed or failed. The receiver may have written nothing, or refused, if the dispatcher wrote send_failed; it may
// also have run the task then, because a reply can be lost. Of a task that was acknowledged both state the same lengths,
// status, run and instances.
//
// Stitch does not check hashes: see Verify.
func Stitch(ours, theirs Half) []Finding {
	return append(direction(ours, theirs), direction(theirs, ours)...)
}

// direction stitches the tasks that one instance sent to the other one.
func direction(dispatcher, receiver Half) []Finding {
	tasks := map[string]*stitching{}
	task := func(r topics.PeerAudit) *stitching {
		t := tasks[r.TaskID]
		if t == nil {
			t = &stitching{id: r.TaskID, dispatcher: dispatcher.Chain.instance(), receiver: receiver.Chain.instance()}
			tasks[r.TaskID] = t
		}
		return t
	}
	for _, r := range dispatcher.Chain.Records {
		if dispatcher.PeerID != "" && r.PeerID != dispatcher.PeerID {
			continue
		}
		switch r.Event {
		case topics.PeerSent:
			task(r).sent.add(r)
		case topics.PeerAcknowledged, topics.PeerSendFailed:
			task(r).outcome.add(r)
		}
	}
	for _, r := range receiver.Chain.Records {
		if receiver.InboundID != "" && r.InboundID != receiver.InboundID || r.TaskID == "" {
			continue
		}
		switch r.Event {
		case topics.PeerReceived:
			task(r).received.add(r)
		case topics.PeerCompleted, topics.PeerFailed:
			task(r).end.add(r)
		case topics.PeerRefused:
			task(r).refused.add(r)
		}
	}
	var findings []Finding
	for _, id := range slices.Sorted(maps.Keys(tasks)) {
		t := tasks[id]
		t.check()
		findings = append(findings, t.findings...)
	}
	return findings
}

// step is the records of one kind of a task, of which there should be one.
type step struct{ records []topics.PeerAudit }

func (s *step) add(r topics.PeerAudit) { s.records = append(s.records, r) }
func (s *step) none() bool             { return len(s.records) == 0 }
func (s *step) one() bool              { return len(s.records) == 1 }
func (s *step) first() topics.PeerAudit {
	if s.none() {
		return topics.PeerAudit{}
	}
	return s.records[0]
}

// stitching is the records of a task in one direction, and what is wrong with them.
type stitching struct {
	id                   string
	dispatcher, receiver string // instance IDs
	sent, outcome        step   // of the dispatcher
	received, end        step   // of the receiver
	refused              step
	findings             []Finding
}

func (t *stitching) check() {
	t.half(&t.sent, &t.outcome, t.dispatcher)
	t.half(&t.received, &t.end, t.receiver)
	acknowledged := t.outcome.first().Event == topics.PeerAcknowledged
	if t.sent.none() {
		t.missing(t.dispatcher, topics.PeerSent, "the receiver has records of the task, or the task has an outcome")
	}
	if t.outcome.none() && !t.sent.none() {
		t.missing(t.dispatcher, topics.PeerAcknowledged, "the task has no outcome")
	}
	if t.received.none() && (acknowledged || !t.end.none()) {
		t.missing(t.receiver, topics.PeerReceived, "the task was run")
	}
	if t.end.none() && (acknowledged || !t.received.none()) {
		t.missing(t.receiver, topics.PeerCompleted, "the task has no end")
	}
	if t.sent.one() && t.received.one() {
		t.compareRequest(t.sent.first(), t.received.first())
	}
	if acknowledged && t.outcome.one() && t.received.one() && t.end.one() {
		t.compareReply(t.outcome.first(), t.received.first(), t.end.first())
	}
	if r := t.end.first(); r.PendingApproval && r.Status != statusRejected {
		t.contradiction(r, fmt.Sprintf("an approval was pending, and the status is %q", r.Status))
	}
}

// half checks that each step of an instance is there once, and in order.
func (t *stitching) half(begin, end *step, instance string) {
	for _, s := range []*step{begin, end} {
		for _, r := range s.records[min(1, len(s.records)):] {
			t.findings = append(t.findings, about(r, Repeated, "the instance has more than one record of this step"))
		}
	}
	if begin.one() && end.one() && begin.first().Seq >= end.first().Seq {
		t.findings = append(t.findings, about(end.first(), Reordered,
			fmt.Sprintf("instance %q wrote it before record %d", instance, begin.first().Seq)))
	}
}

func (t *stitching) missing(instance string, event topics.PeerEvent, why string) {
	t.findings = append(t.findings, Finding{
		Kind: Missing, InstanceID: instance, TaskID: t.id, Event: event, Text: why,
	})
}

func (t *stitching) contradiction(r topics.PeerAudit, text string) {
	t.findings = append(t.findings, about(r, Contradiction, text))
}

// The statuses of replies that Stitch needs to know.
const (
	statusError    = "error"
	statusRejected = "rejected"
)

func (t *stitching) compareRequest(sent, received topics.PeerAudit) {
	t.number(received, "content length", sent.ContentLength, received.ContentLength)
	// The dispatcher may leave these to the receiver, and need not say where the task comes from.
	t.text(received, "agent", sent.AgentID, received.AgentID)
	t.text(received, "model", sent.Model, received.Model)
	t.text(received, "dispatcher's instance", sent.InstanceID, received.ParentInstanceID)
	t.text(received, "dispatcher's session", sent.SessionID, received.ParentSessionID)
	t.text(received, "dispatcher's run", sent.ParentRunID, received.ParentRunID)
}

func (t *stitching) compareReply(acknowledged, received, end topics.PeerAudit) {
	status := end.Status
	if end.Event == topics.PeerFailed {
		status = statusError
	}
	if acknowledged.Status != status {
		t.contradiction(acknowledged, fmt.Sprintf("status: %q of the dispatcher, %q of the receiver", acknowledged.Status, status))
	}
	t.number(acknowledged, "result length", acknowledged.ResultLength, end.ResultLength)
	t.text(acknowledged, "receiver's instance", acknowledged.PeerInstanceID, received.InstanceID)
	t.text(acknowledged, "receiver's run", acknowledged.PeerRunID, received.RunID)
	t.text(end, "run", received.RunID, end.RunID)
}

func (t *stitching) number(r topics.PeerAudit, what string, dispatcher, receiver int64) {
	if dispatcher != receiver {
		t.contradiction(r, fmt.Sprintf("%s: %d of the dispatcher, %d of the receiver", what, dispatcher, receiver))
	}
}

// text compares texts that either side may leave out.
func (t *stitching) text(r topics.PeerAudit, what, one, other string) {
	if one != "" && other != "" && one != other {
		t.contradiction(r, fmt.Sprintf("%s: %q and %q", what, one, other))
	}
}
