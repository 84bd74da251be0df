package mailbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/lovoo/goka"
	"google.golang.org/protobuf/reflect/protoreflect"

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

// version is the version of the rows that this build writes: see rows.Table.
const version = 1

// Table is the format of the rows of a group. complete, unless it is nil, adds the messages that a row has beside its mailbox.
func Table[R Row](name string, complete func(R)) rows.Table[R] {
	return rows.Table[R]{Name: name, Version: version, Loaded: func(row R) error {
		row.ProtoReflect().Mutable(field(row, 3)) // the mailbox
		if complete != nil {
			complete(row)
		}
		return nil
	}}
}

func field[R Row](row R, number protoreflect.FieldNumber) protoreflect.FieldDescriptor {
	return row.ProtoReflect().Descriptor().Fields().ByNumber(number)
}

// Apply applies an input to a row and collects the effects in the step. It returns the earliest deadline of the row in Unix
// milliseconds, 0 for none, and whether the row is kept. It must be deterministic.
type Apply[R Row] func(row R, in topics.CrewInput, step *Step) (deadlineMS int64, keep bool)

// Group is one of the three groups of crews.
type Group[R Row] struct {
	Name   goka.Group
	topics topics.Catalog
	kind   string
	table  rows.Table[R]
	apply  Apply[R]
}

// NewGroup returns the group whose rows are those of the subjects of a kind, such as OfAgent. name is that of the catalog.
func NewGroup[R Row](name, kind string, table rows.Table[R], apply Apply[R]) (Group[R], error) {
	catalog, err := topics.For(name)
	if err != nil {
		return Group[R]{}, err
	}
	g := Group[R]{Name: catalog.CrewRepositoriesGroup(), topics: catalog, kind: kind, table: table, apply: apply}
	switch kind {
	case OfAgent:
		g.Name = catalog.CrewAgentsGroup()
	case OfCrew:
		g.Name = catalog.CrewsGroup()
	}
	return g, nil
}

// dueTimeout is how long a row waits for its crewbody.Due, which is lost only if it was dead-lettered.
const dueTimeout = time.Minute

// Graph returns the Goka graph of a group.
func (g Group[R]) Graph() *goka.GroupGraph {
	inputs := []processors.Source{processors.Input(Inputs(g.topics, g.kind), g.onInput)}
	outputs := []goka.Edge{
		output(g.topics.CrewAgentInputs), output(g.topics.CrewInputs), output(g.topics.CrewRepositoryInputs),
		output(g.topics.CrewActions), output(g.topics.CrewEvents),
	}
	if g.kind == OfAgent {
		inputs = append(inputs, processors.Input(g.topics.GateOutcomes, g.onOutcome))
		outputs = append(outputs, output(g.topics.GateRequests))
	}
	edges := append(processors.Edges(g.Name, inputs...), outputs...)
	return goka.DefineGroup(g.Name, append(edges, goka.Persist(timed.Of(g.table, g.onDeadline)))...)
}

func output[T any](t topics.Topic[T]) goka.Edge { return goka.Output(t.Stream(), t.Codec()) }

// New returns an empty row.
func (g Group[R]) New() R {
	var none R
	row := none.ProtoReflect().New().Interface().(R)
	_ = g.table.Loaded(row) // that of Table returns nil
	g.set(row, 0)
	return row
}

// set sets the version and the deadline of a row.
func (g Group[R]) set(row R, deadlineMS int64) {
	m := row.ProtoReflect()
	m.Set(field(row, 1), protoreflect.ValueOfUint32(version))
	m.Set(field(row, 2), protoreflect.ValueOfInt64(deadlineMS))
}

// Step applies an input to a row, nil for a key without one, and returns what to write. It is what the group does, without
// Goka. The row is changed. changed is false for a repeat: then nothing is written.
func (g Group[R]) Step(row R, key string, in topics.CrewInput, at, wall time.Time) (keep, changed bool, effects []Effect) {
	step, ok := Begin(row.GetMailbox(), g.kind+key, in, at, wall)
	if !ok {
		return true, false, nil
	}
	deadline, keep := g.apply(row, in, step)
	box := row.GetMailbox()
	if in.Kind == dueKind || box.ClockMs > box.AskedMs+dueTimeout.Milliseconds() {
		box.AskedMs = 0
	}
	if box.AskedMs != 0 && deadline >= box.AskedMs {
		deadline = 0 // crewbody.Due is on its way
	}
	g.set(row, deadline)
	return keep, true, step.Effects
}

func (g Group[R]) onInput(c *processors.Context, in codec.Decoded[topics.CrewInput]) error {
	if in.Tombstone() {
		return c.DeadLetter("a tombstone is no input")
	}
	row, known, err := g.row(c)
	switch {
	case errors.Is(err, rows.ErrVersion):
		return err
	case err != nil:
		return c.DeadLetter("the row cannot be decoded: the input has no effect")
	}
	keep, changed, effects := g.Step(row, c.Key(), in.Value, c.Timestamp(), c.Now())
	for _, e := range effects {
		if err := g.emit(c, e); err != nil {
			return err
		}
	}
	switch {
	case !changed:
		return nil
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
	row, err = g.table.Of(value)
	return row, true, err
}

// onOutcome forwards the outcome of a gate to the row's input, so that all inputs of a row are in one order.
func (g Group[R]) onOutcome(c *processors.Context, in codec.Decoded[topics.GateOutcome]) error {
	if in.Tombstone() || c.Value() == nil {
		return nil // the outcome of another capability's gate
	}
	o := in.Value
	return g.forward(c, o.GateID+"/outcome", crewbody.GateEnded{
		GateID: o.GateID, Status: o.Status, Cause: o.Cause, OptionID: o.OptionID, By: o.By,
	})
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
	due, box := row.GetDeadlineMs(), row.GetMailbox()
	id := fmt.Sprintf("%s%s/due/%d/%d", g.kind, c.Key(), due, box.GetClockMs())
	if err := g.forward(c, id, crewbody.Due{AtMS: due}); err != nil {
		return err
	}
	box.AskedMs = due
	g.set(row, 0)
	return c.SetValue(row)
}

// forward writes an input to the row's own input.
func (g Group[R]) forward(c *processors.Context, id string, body crewbody.Body) error {
	return g.emit(c, Mail{To: g.kind + c.Key(), Input: topics.CrewInput{InputID: id, Kind: body.Kind(), Body: crewbody.Encode(body)}})
}

func (g Group[R]) emit(c *processors.Context, e Effect) error {
	switch e := e.(type) {
	case Mail:
		return processors.EmitWithID(c, Inputs(g.topics, e.To), ID(e.To), e.Input, e.Input.InputID)
	case topics.CrewAction:
		return processors.EmitWithID(c, g.topics.CrewActions, e.Subject, e, e.ActionID)
	case topics.CrewEvent:
		return processors.EmitWithID(c, g.topics.CrewEvents, e.Subject, e, fmt.Sprintf("%s/event/%d", e.Subject, e.Seq))
	case Ask:
		return processors.EmitWithID(c, g.topics.GateRequests, e.Request.SessionID, e.Request, e.ID)
	case Letter:
		return c.DeadLetter(string(e))
	default:
		return fmt.Errorf("crew: no topic for %T", e)
	}
}

// Inputs is the topic of the inputs of a subject.
func Inputs(c topics.Catalog, subject string) topics.Topic[topics.CrewInput] {
	switch subject[:len(subject)-len(ID(subject))] {
	case OfAgent:
		return c.CrewAgentInputs
	case OfCrew:
		return c.CrewInputs
	default:
		return c.CrewRepositoryInputs
	}
}

// Handlers apply inputs, by the kinds of the inputs. A is the application of one input to a row. A handler returns false for a body
// that cannot be decoded.
type Handlers[A any] map[string]func(a A, in topics.CrewInput) bool

// On adds the handler of the inputs whose body is a T.
func On[A any, T crewbody.Body](h Handlers[A], do func(A, T)) {
	var none T
	h[none.Kind()] = func(a A, in topics.CrewInput) bool {
		body, err := crewbody.Decode[T](in.Body)
		if err == nil {
			do(a, body)
		}
		return err == nil
	}
}

// Handle applies an input. It dead-letters one of an unknown kind, and one whose body cannot be decoded, with the given reasons.
func (h Handlers[A]) Handle(s *Step, a A, in topics.CrewInput, unknown, broken string) {
	handle := h[in.Kind]
	switch {
	case handle == nil:
		s.DeadLetter(unknown)
	case !handle(a, in):
		s.DeadLetter(broken)
	}
}
