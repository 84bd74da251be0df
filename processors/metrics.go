package processors

import (
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
)

// State is what a processor is doing.
type State string

// The states of a processor.
const (
	NotStarted State = "not started" // Run was not called
	Recovering State = "recovering"  // it creates topics, joins the group or reads its tables
	Running    State = "running"     // it handles records
	// Degraded: it failed and waits for its restart, its membership is not confirmed, or offsets cannot be committed.
	Degraded State = "degraded"
	Stopped  State = "stopped" // Run has returned
)

func stateOf(s instance.State) State { return State(s.String()) }

// Metrics are callbacks for events of a processor. They are called from several goroutines and must not block. Any may be
// nil.
type Metrics struct {
	// State is called with each new state.
	State func(State)
	// Restart is called when the processor has failed and restarts after wait.
	Restart func(cause error, wait time.Duration)
	// Retry is called when a handler has failed and is called again after wait. attempts is the number of failed attempts;
	// cause wraps a RecordError.
	Retry func(cause error, attempts int, wait time.Duration)
	// Cut is called when offsets, table and outputs have advanced. records is the number of records of the cut, age the
	// time since the oldest of them was passed to Goka, and commit the duration of the commit.
	Cut func(records int, age, commit time.Duration)
	// DeadLetter is called for each record that is sent to the dead-letter topic.
	DeadLetter func(*RecordError)
}

func (m Metrics) hooks() instance.Hooks {
	var h instance.Hooks
	if m.State != nil {
		h.State = func(s instance.State) { m.State(stateOf(s)) }
	}
	h.Restart, h.Retry = m.Restart, m.Retry
	if m.Cut != nil {
		h.Cut = func(made cut.Made) { m.Cut(made.Records, made.Age, made.Took) }
	}
	return h
}

// onDeadLetter returns the function that logs a dead letter and calls the metric.
func (m Metrics) onDeadLetter(log *zap.Logger) func(*RecordError) {
	return func(e *RecordError) {
		log.Warn("record dead-lettered", zap.String("group", string(e.Group)), zap.String("topic", e.Topic),
			zap.Int32("partition", e.Partition), zap.Int64("offset", e.Offset), zap.String("stage", string(e.Stage)),
			zap.String("reason", cleanReason(e.Err.Error())))
		if m.DeadLetter != nil {
			m.DeadLetter(e)
		}
	}
}
