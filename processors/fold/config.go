package fold

import (
	"errors"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/envoption"
	"github.com/turntable-streams/turntable/processors/approval"
)

// ErrConfig is wrapped by the errors of Graph about a Config. They name each field that is out of its bounds.
var ErrConfig = errors.New("fold: invalid configuration")

// Config configures Graph. Fields that are zero have their defaults.
type Config struct {
	// WindowCount is how many records a turn holds while an earlier record is missing (default 256, 1 to 10,000), WindowBytes how
	// many bytes of them (default 256 KiB, at most 1 GiB), and WindowWait for how long it waits for the missing record (default 30 s,
	// at least 1 ms). When one of these is exceeded, the turn is closed as failed.
	WindowCount, WindowBytes int
	WindowWait               time.Duration
	// Grace is how long a turn waits for the terminal record after its last record, once it has a done event (default 5 s, at least
	// 1 ms). Then the turn is closed with the outcome of its events. While an earlier record is missing, the turn waits for that
	// record instead.
	Grace time.Duration
	// Silence is after how long without a record a turn expires (default 30 minutes, at least 1 ms). Set it longer than the longest
	// tool call.
	Silence time.Duration
	// OpenTurns is how many turns of a session can be open (default 16, 1 to 256). A further turn expires the open turn that has been
	// idle for the longest time.
	OpenTurns int
	// TurnLimit is how many bytes of events a turn can have (default: RecordLimit less 64 KiB; at least 1 KiB, at most 1 GiB). The size
	// is that of the turn's Log: deltas are joined and thoughts do not count. A larger turn is closed as failed.
	TurnLimit int
	// RecordLimit is the maximum size of a record that is written, in bytes with key and headers (default 1 MiB, 128 KiB to 1 GiB). It
	// must not exceed the producer's max.request.size and the topics' max.message.bytes. A batch that is larger is reduced to the
	// turn's first events and has the state failed.
	RecordLimit int
	// RememberFor is for how long a session remembers closed turns (default 24 hours, at least 1 ms), and RememberCount how many it
	// remembers for that time at least (default 512, 1 to 1024); it may forget older ones earlier. If records of a forgotten turn are
	// redelivered, the turn is opened again.
	RememberFor   time.Duration
	RememberCount int
	// ThinkResponses makes every complete turn emit a think-response, and every other turn a record on think-dlq, so that the turn
	// processor answers the message. A paused turn emits neither, and its step stays open.
	//
	// The conversation is read from topics.AgentEvent.Request. Set it in one record of every turn. Without it, the turn processor
	// assigns the answer to the step that is open when it reads the record, appends it to the stored history, and stores the cost of
	// this turn as the cost of the session. A turn that is not complete then emits nothing on think-dlq, because it cannot name the
	// message that failed; its step ends by its think timeout.
	ThinkResponses bool
	// Gates makes a run that pauses wait for decisions (see Paused runs in the package documentation): its turn stays open without a
	// batch, and each of its open interaction requests becomes a record on gate-requests. The turn waits for the outcomes without
	// expiring, until 5 minutes after their deadline.
	//
	// The catalog for processors.WithTopics needs topics.WithGates. While turns wait, builds without this field cannot read their
	// rows.
	Gates bool
	// GateTimeout is the deadline of gates: how long after a pause a decision can be made (default 10 minutes, approval.DefaultTTL;
	// 1 ms to 30 days). Every request carries it as expires_at, so that the gate, and a turn processor with turn.Config.Gates, assume
	// the same deadline. The turn expires 5 minutes later if it has no outcome then, for example because no processor of gates is
	// running.
	GateTimeout time.Duration
}

const (
	// tailLimit is the maximum number of bytes of a turn's events in the row. They are written with every row, once per
	// cut. A part has an overhead of about 40 bytes.
	tailLimit = 256
	// recordMargin is how far parts and turns stay below the record limit, for key, framing and tail.
	recordMargin = 64 << 10
	// rowReserve is the size of a row without the events of its turns, if the table has no parts.
	rowReserve  = 96 << 10
	maxTurnID   = 256
	minRecord   = envoption.MinRecordLimit
	maxOpen     = 256    // maximum of OpenTurns
	maxWindow   = 10_000 // maximum of WindowCount
	maxRemember = 16 * pageEntries
	// mostGateTimeout is the longest deadline of a gate, and gateMargin how much longer a turn waits for its outcome.
	mostGateTimeout = 30 * 24 * time.Hour
	gateMargin      = 5 * time.Minute
	// maxGates is the maximum number of open gates of a turn, and of the outcomes that a session holds.
	maxGates = 256
)

// gateWait returns after how long a turn whose gates have no outcome expires.
func (c *Config) gateWait() time.Duration { return c.GateTimeout + gateMargin }

// eventLimit returns the maximum size of an event, which must fit into a part.
func (c *Config) eventLimit() int { return max(c.RecordLimit-recordMargin, c.RecordLimit/2) }

// complete gives fields that are zero their defaults. Its error is that of Graph.
func (c *Config) complete() error {
	const most = 1 << 30
	var check bounds.Check
	bounds.Between(&check, "WindowCount", &c.WindowCount, 256, 1, maxWindow)
	bounds.Between(&check, "WindowBytes", &c.WindowBytes, 256<<10, 1, most)
	bounds.AtLeast(&check, "WindowWait", &c.WindowWait, 30*time.Second, time.Millisecond)
	bounds.AtLeast(&check, "Grace", &c.Grace, 5*time.Second, time.Millisecond)
	bounds.AtLeast(&check, "Silence", &c.Silence, 30*time.Minute, time.Millisecond)
	bounds.Between(&check, "OpenTurns", &c.OpenTurns, 16, 1, maxOpen)
	bounds.Between(&check, "RecordLimit", &c.RecordLimit, envoption.DefaultRecordLimit, minRecord, most)
	bounds.Between(&check, "TurnLimit", &c.TurnLimit, c.RecordLimit-recordMargin, 1<<10, most)
	bounds.AtLeast(&check, "RememberFor", &c.RememberFor, 24*time.Hour, time.Millisecond)
	bounds.Between(&check, "RememberCount", &c.RememberCount, 512, 1, maxRemember)
	bounds.Between(&check, "GateTimeout", &c.GateTimeout, approval.DefaultTTL, time.Millisecond, mostGateTimeout)
	return check.Err(ErrConfig)
}
