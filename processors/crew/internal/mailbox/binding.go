package mailbox

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/internal/rows"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/timed"
	"github.com/turntable-streams/turntable/topics"
)

// Row is the Protobuf message of a group's row. Its fields version = 1, deadline_ms = 2 and mailbox = 3 are those of
// rows and of this package.
type Row interface {
	rows.Message
	GetMailbox() *Mailbox
	GetDeadlineMs() int64
}

// Group is what the groups of crews differ in.
type Group[R Row] struct {
	Topics topics.Catalog
	Name   goka.Group
	Input  topics.Topic[topics.CrewInput]
	// Kind is the kind of the row's subject, such as OfAgent.
	Kind  string
	Table rows.Table[R]
	// New returns an empty row with an empty mailbox.
	New func() R
	// Apply applies an input to a row and collects the effects in the step. It returns the earliest deadline of the row in Unix
	// milliseconds, 0 for none, and whether the row is kept. It must be deterministic.
	Apply func(row R, in topics.CrewInput, step *Step) (deadlineMS int64, keep bool)
	// SetDeadline sets the row's deadline_ms.
	SetDeadline func(row R, ms int64)
	// Outcomes says that the outcomes of gates of the row are forwarded to its input.
	Outcomes bool
}

// dueTimeout is how long a row waits for its crewbody.Due, which is lost only if it was dead-lettered.
const dueTimeout = time.Minute

const (
	reasonBroken    = "the row cannot be decoded: the input has no effect"
	reasonTombstone = "a tombstone is no input"
)

// Graph returns the Goka graph of a group.
func (g Group[R]) Graph() *goka.GroupGraph {
	inputs := []processors.Source{processors.Input(g.Input, g.onInput)}
	outputs := []goka.Edge{
		output(g.Topics.CrewAgentInputs), output(g.Topics.CrewInputs), output(g.Topics.CrewRepositoryInputs),
		output(g.Topics.CrewActions), output(g.Topics.CrewEvents),
	}
	if g.Outcomes {
		inputs = append(inputs, processors.Input(g.Topics.GateOutcomes, g.onOutcome))
		outputs = append(outputs, output(g.Topics.GateRequests))
	}
	edges := append(processors.Edges(g.Name, inputs...), outputs...)
	return goka.DefineGroup(g.Name, append(edges, goka.Persist(timed.Of(g.Table, g.onDeadline)))...)
}

func output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

// Step applies an input to a row, nil for a key without one, and returns what to write. It is what the group does, without
// Goka. The row is changed. changed is false for a repeat: then nothing is written.
func (g Group[R]) Step(row R, key string, in topics.CrewInput, at, wall time.Time) (keep, changed bool, effects []Effect) {
	step, ok := Begin(row.GetMailbox(), g.Kind+key, in, at, wall)
	if !ok {
		return true, false, nil
	}
	deadline, keep := g.Apply(row, in, step)
	box := row.GetMailbox()
	if in.Kind == dueKind || box.ClockMs > box.AskedMs+dueTimeout.Milliseconds() {
		box.AskedMs = 0
	}
	if box.AskedMs != 0 && deadline >= box.AskedMs {
		deadline = 0 // crewbody.Due is on its way
	}
	g.SetDeadline(row, deadline)
	return keep, true, step.Effects
}

func (g Group[R]) onInput(c *processors.Context, in codec.Decoded[topics.CrewInput]) error {
	if in.Tombstone() {
		return c.DeadLetter(reasonTombstone)
	}
	row, known, err := g.row(c)
	switch {
	case errors.Is(err, rows.ErrVersion):
		return err
	case err != nil:
		return c.DeadLetter(reasonBroken)
	}
	keep, changed, effects := g.Step(row, c.Key(), in.Value, c.Timestamp(), c.Now())
	if !changed {
		return nil
	}
	if err := g.perform(c, effects); err != nil {
		return err
	}
	switch {
	case keep:
		return c.SetValue(row)
	case known:
		return c.Delete()
	}
	return nil
}

func (g Group[R]) row(c *processors.Context) (row R, known bool, err error) {
	value := c.Value()
	if value == nil {
		return g.New(), false, nil
	}
	row, err = g.Table.Of(value)
	return row, true, err
}

// onOutcome forwards the outcome of a gate to the row's input, so that all inputs of a row are in one order.
func (g Group[R]) onOutcome(c *processors.Context, in codec.Decoded[topics.GateOutcome]) error {
	if in.Tombstone() || c.Value() == nil {
		return nil // the outcome of another capability's gate
	}
	o := in.Value
	return g.emit(c, Mail{To: g.Kind + c.Key(), Input: topics.CrewInput{
		InputID: o.GateID + "/outcome", Kind: (crewbody.GateEnded{}).Kind(),
		Body: crewbody.Encode(crewbody.GateEnded{
			GateID: o.GateID, Status: o.Status, Cause: o.Cause, OptionID: o.OptionID, By: o.By,
		}),
	}})
}

// onDeadline writes crewbody.Due to the row's input, once per deadline.
func (g Group[R]) onDeadline(c *processors.Context) error {
	row, known, err := g.row(c)
	switch {
	case errors.Is(err, rows.ErrVersion):
		return err
	case err != nil || !known || row.GetDeadlineMs() == 0:
		return nil
	}
	due := row.GetDeadlineMs()
	if err := g.emit(c, Mail{To: g.Kind + c.Key(), Input: topics.CrewInput{
		InputID: fmt.Sprintf("%s%s/due/%d/%d", g.Kind, c.Key(), due, row.GetMailbox().GetClockMs()), Kind: dueKind,
		Body: crewbody.Encode(crewbody.Due{AtMS: due}),
	}}); err != nil {
		return err
	}
	row.GetMailbox().AskedMs = due
	g.SetDeadline(row, 0)
	return c.SetValue(row)
}

func (g Group[R]) perform(c *processors.Context, effects []Effect) error {
	for _, e := range effects {
		if err := g.emit(c, e); err != nil {
			return err
		}
	}
	return nil
}

func (g Group[R]) emit(c *processors.Context, e Effect) error {
	switch e := e.(type) {
	case Mail:
		return processors.EmitWithID(c, g.inputs(e.To), ID(e.To), e.Input, e.Input.InputID)
	case Act:
		return processors.EmitWithID(c, g.Topics.CrewActions, e.Subject, e.Action, e.Action.ActionID)
	case Happened:
		return processors.EmitWithID(c, g.Topics.CrewEvents, e.Event.Subject, e.Event,
			e.Event.Subject+"/event/"+strconv.FormatInt(e.Event.Seq, 10))
	case Ask:
		return processors.EmitWithID(c, g.Topics.GateRequests, e.Request.SessionID, e.Request, e.ID)
	case Letter:
		return c.DeadLetter(e.Reason)
	default:
		return fmt.Errorf("crew: no topic for %T", e)
	}
}

// inputs is the topic whose keys are the IDs of a subject's kind.
func (g Group[R]) inputs(to string) topics.Topic[topics.CrewInput] {
	switch kind := to[:len(to)-len(ID(to))]; kind {
	case OfAgent:
		return g.Topics.CrewAgentInputs
	case OfCrew:
		return g.Topics.CrewInputs
	default:
		return g.Topics.CrewRepositoryInputs
	}
}
