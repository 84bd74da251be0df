package processors

import (
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/instance"
)

// Metrics are called as things happen, from several goroutines. They must not block. Any may be nil.
type Metrics struct {
	// State is called with each new state.
	State func(State)
	// Restart is called when the processor has failed and will start again after the wait.
	Restart func(cause error, wait time.Duration)
	// Cut is called when offsets, table and outputs have advanced: by so many records, the oldest of which was handed
	// out so long ago, with so long for the commit.
	Cut func(records int, age, commit time.Duration)
	// DeadLetter is called for each record on its way to the dead-letter topic.
	DeadLetter func(*RecordError)
}

// WithMetrics sets callbacks for metrics.
func WithMetrics(m Metrics) Option { return func(o *options) { o.metrics = m } }

func (m Metrics) hooks() instance.Hooks {
	var h instance.Hooks
	if m.State != nil {
		h.State = func(s instance.State) { m.State(stateOf(s)) }
	}
	h.Restart = m.Restart
	if m.Cut != nil {
		h.Cut = func(made cut.Made) { m.Cut(made.Records, made.Age, made.Took) }
	}
	return h
}

// onDeadLetter logs and counts.
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
