package mailbox

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// The kinds of subjects. A subject is the kind and the ID of a row, such as "agent/a1".
const (
	OfAgent      = "agent/"
	OfCrew       = "crew/"
	OfRepository = "repository/"
	OfHost       = "host/"
)

// Agent, Crew and Repository are subjects.
func Agent(id string) string      { return OfAgent + id }
func Crew(id string) string       { return OfCrew + id }
func Repository(id string) string { return OfRepository + id }

// PerEpoch is how many numbers a run of a host has: its epoch and a counter are one number.
const PerEpoch = 1_000_000_000

// ID is the ID in a subject: the key of the row.
func ID(subject string) string {
	_, id, _ := strings.Cut(subject, "/")
	return id
}

// Effect is what a step writes: a Mail, a topics.CrewAction, a topics.CrewEvent, an Ask or a Letter.
type Effect any

// Mail is an input for a row.
type Mail struct {
	To    string // subject of the row
	Input topics.CrewInput
}

// Ask opens, or withdraws, a gate.
type Ask struct {
	Request topics.GateRequest
	ID      string // turntable.id of the record
}

// Letter is the reason with which the record of the step is dead-lettered.
type Letter string

const (
	// maxAhead is how far the timestamp of a record may be ahead of the clock of the process that reads it.
	maxAhead = time.Minute
	// recentLimit is the number of inputs without a sender that a row remembers.
	recentLimit = 128
	digestSize  = digests.Size
	// perMS is how many records a row can send per millisecond of its life without reusing a number of an earlier row of its key.
	perMS = 1000
)

var (
	dueKind     = crewbody.Due{}.Kind()
	commandKind = crewbody.Command{}.Kind()
)

// Step is the application of one input to a row. It collects the effects. It is not safe for concurrent use.
type Step struct {
	Subject string    // of the row
	Now     time.Time // of the step, see the package documentation
	Cause   string    // ID of the input
	Effects []Effect
	// CrewID and ProjectID are those of the events of the step.
	CrewID, ProjectID string
	// Answering says that notes to the agent whose command the step executes answer the command: they get its ID.
	Answering bool

	box *Mailbox
	// command and commander are the ID and the sender of the input if it is a command.
	command, commander string
}

// Begin begins the step of an input whose record has the timestamp at. It changes box, the mailbox of the row, and returns
// false if the input was applied before: then the row and the step must not be used. wall limits timestamps from the future.
func Begin(box *Mailbox, subject string, in topics.CrewInput, at, wall time.Time) (*Step, bool) {
	now := at.UnixMilli()
	if in.Kind == dueKind {
		due, _ := crewbody.Decode[crewbody.Due](in.Body)
		now = max(now, due.AtMS)
	}
	if limit := wall.Add(maxAhead).UnixMilli(); now <= 0 || now > limit {
		now = wall.UnixMilli()
	}
	if box.ClockMs == 0 {
		box.Sent = now * perMS
	}
	if !box.take(in) {
		return nil, false
	}
	box.ClockMs = max(box.ClockMs, now)
	s := &Step{Subject: subject, Now: time.UnixMilli(box.ClockMs).UTC(), Cause: in.InputID, box: box}
	if in.Kind == commandKind {
		s.command, s.commander = in.InputID, in.From
	}
	return s, true
}

// take reports whether an input is new, and remembers it.
func (m *Mailbox) take(in topics.CrewInput) bool {
	if in.From != "" {
		if in.Number <= m.Heard[in.From] {
			return false
		}
		if m.Heard == nil {
			m.Heard = map[string]int64{}
		}
		m.Heard[in.From] = in.Number
		return true
	}
	if in.Kind == dueKind { // does nothing if nothing is due
		return true
	}
	d := digests.Of("crew-input", in.InputID)
	for known := m.Recent; len(known) >= digestSize; known = known[digestSize:] {
		if string(known[:digestSize]) == string(d[:]) {
			return false
		}
	}
	m.Recent = append(m.Recent, d[:]...)
	if surplus := len(m.Recent) - recentLimit*digestSize; surplus > 0 {
		m.Recent = append([]byte(nil), m.Recent[surplus:]...)
	}
	return true
}

// Forget forgets a sender that cannot send any more.
func (s *Step) Forget(from string) { delete(s.box.Heard, from) }

// NowMS is the time of the step in Unix milliseconds.
func (s *Step) NowMS() int64 { return s.box.ClockMs }

// Earlier returns the earlier of two times in Unix milliseconds, of which 0 is none.
func Earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// next returns the next number of the row.
func (s *Step) next() int64 {
	s.box.Sent++
	return s.box.Sent
}

func (s *Step) numbered() string { return fmt.Sprintf("%s/%d", s.Subject, s.next()) }

// NewID returns an ID that no other step of the row returns, such as "dec-a1b2...".
func (s *Step) NewID(prefix string) string {
	d := digests.Of("crew-id", s.Subject, fmt.Sprint(s.next()))
	return prefix + "-" + hex.EncodeToString(d[:8])
}

// Send sends an input to the row of a subject. The row may be that of the step. See Answering for notes.
func (s *Step) Send(to string, body crewbody.Body) {
	n := s.next()
	s.send(fmt.Sprintf("%s>%s/%d", s.Subject, to, n), to, n, body)
}

// SendAs is Send with an ID of the caller's. The receiver knows a repeat by its number.
func (s *Step) SendAs(id, to string, body crewbody.Body) { s.send(id, to, s.next(), body) }

func (s *Step) send(id, to string, n int64, body crewbody.Body) {
	if note, ok := body.(crewbody.Note); ok && s.Answering && note.CommandID == "" && to == s.commander {
		note.CommandID = s.command
		body = note
	}
	s.Effects = append(s.Effects, Mail{To: to, Input: topics.CrewInput{
		InputID: id, Kind: body.Kind(), From: s.Subject, Number: n, Body: crewbody.Encode(body),
	}})
}

// Do has a host do an action, and returns the action's ID. epoch is 0 if any run of the host may do it.
func (s *Step) Do(host string, epoch int64, body crewbody.Body) string {
	id := s.numbered()
	s.Redo(id, host, epoch, body)
	return id
}

// Redo has a host do an action again, under the action's ID.
func (s *Step) Redo(id, host string, epoch int64, body crewbody.Body) {
	s.Effects = append(s.Effects, topics.CrewAction{
		ActionID: id, Kind: body.Kind(), Host: host, Epoch: epoch, Subject: s.Subject, Body: crewbody.Encode(body),
	})
}

// Event writes an event. fields is a struct or a map that is encoded as a JSON object with the event's own members.
func (s *Step) Event(kind string, fields any) {
	// Fields may have JSON of agents, which crewbody.Decode reads as leniently.
	raw, err := json.Marshal(fields, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		panic("crew: event " + kind + ": " + err.Error()) // the fields are of this module
	}
	s.box.Seq++
	s.Effects = append(s.Effects, topics.CrewEvent{
		Type: kind, Subject: s.Subject, Seq: s.box.Seq, Version: 1, Cause: s.Cause, CrewID: s.CrewID, ProjectID: s.ProjectID,
		AtMS: s.NowMS(), Fields: raw,
	})
}

// Gate opens or withdraws a gate.
func (s *Step) Gate(r topics.GateRequest) {
	s.Effects = append(s.Effects, Ask{Request: r, ID: s.numbered()})
}

// DeadLetter dead-letters the record of the step with a reason.
func (s *Step) DeadLetter(reason string) { s.Effects = append(s.Effects, Letter(reason)) }
