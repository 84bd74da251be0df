package invoke

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"time"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// ErrConfig is wrapped by the errors of New, NewBuffered and NewPipeline about invalid arguments and configurations.
var ErrConfig = errors.New("invoke: invalid configuration")

// Config configures New. Fields that are zero have their defaults.
type Config struct {
	// Door is the configuration of the door. If Authenticate returns an *Error, the response has its status and text. Callers need
	// auth.Read to resume a turn, auth.Read and auth.Write to start one, auth.Read and auth.Answer to continue a paused one. A
	// request for a session that the caller may not use is answered with 403. When the credential expires, an open stream ends
	// with an error event (code credential_expired) and stream_end, and a batch that is not complete is answered with 401. The
	// turn continues, and the client can resume it with a new credential. The caller is passed to the agent in Request.Caller; the
	// door does not use the UserID. A stream counts as a request that is open until its end.
	auth.Door
	// Capability is the agent's capability (default: batches and streams, and all flags).
	Capability Capability
	// Resolve changes each new request before the agent gets it, for example to load documents that the request refers to (default:
	// none). It is not called for a request whose flag resolve is false.
	Resolve func(context.Context, Request) (Request, error)
	// BatchLimit is the maximum size in bytes of a turn that is answered as a batch (default 64 MiB, at least 1). A larger turn is
	// answered with an error. Streams are not limited.
	BatchLimit int
	// Keepalive is after how long without an event a stream sends a keepalive (default 15 s; negative: it sends none).
	Keepalive time.Duration
	// WriteTimeout is the deadline of each write to a client (default 30 s; negative: the server's deadline). The connection to a slower
	// client is closed.
	WriteTimeout time.Duration
	// Version is the response header x-ag-version (default "unknown").
	Version string
	// StrictFold makes a batch with a malformed event fail (default: the event is left out). Streams always contain the event.
	StrictFold bool
	// Random is the source of trace, span and session ids (default: crypto/rand). It is not read concurrently.
	Random io.Reader
}

func (c *Config) complete(check *bounds.Check) {
	entrance.Complete(check, &c.Door)
	if c.Capability.Shape > StreamOnly {
		check.Wrong("Capability", "has the unknown shape %d", c.Capability.Shape)
	}
	bounds.AtLeast(check, "BatchLimit", &c.BatchLimit, 64<<20, 1)
	bounds.OrNone(&c.Keepalive, 15*time.Second)
	bounds.OrNone(&c.WriteTimeout, 30*time.Second)
	if c.Version == "" {
		c.Version = "unknown"
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
}

// folding are the options of the fold of a batch.
func (c *Config) folding() []folder.Option {
	if c.StrictFold {
		return []folder.Option{folder.Strict()}
	}
	return nil
}

// BufferConfig configures NewBuffered. Fields that are zero have their defaults.
type BufferConfig struct {
	// Turns is how many turns are kept (default 1000), TurnBytes how many bytes of events one turn can have (default 16 MiB), and Bytes
	// how many all turns together (default 256 MiB, at least TurnBytes). All are at least 1. A larger turn fails. When the buffer is
	// full, the oldest ended turn is evicted; if all turns are running, new requests get 503.
	Turns, TurnBytes, Bytes int
	// CallerTurns and SessionTurns are how many of the turns one caller and one session can have (default: a quarter of Turns for a
	// caller, or 16 if that is more; 16 for a session; at least 1). At the limit, its own oldest ended turn is evicted; if all of them
	// are running, a request gets 429. One caller can have a quarter of the bytes, or one turn's if that is more. Callers are told apart
	// as in the limits of the door.
	CallerTurns, SessionTurns int
	// KeepFor is how long a turn is kept after it has ended (default 5 min; negative: not at all).
	KeepFor time.Duration
	// Clock is for KeepFor (default: the system's).
	Clock processors.Clock
}

// defaultShare is how many turns a session, or a caller of a small buffer, can have.
const defaultShare = 16

func (c *BufferConfig) complete(check *bounds.Check) {
	bounds.AtLeast(check, "Turns", &c.Turns, 1000, 1)
	bounds.AtLeast(check, "TurnBytes", &c.TurnBytes, 16<<20, 1)
	bounds.AtLeast(check, "Bytes", &c.Bytes, max(256<<20, c.TurnBytes), c.TurnBytes)
	bounds.AtLeast(check, "CallerTurns", &c.CallerTurns, max(c.Turns/4, defaultShare), 1)
	bounds.AtLeast(check, "SessionTurns", &c.SessionTurns, defaultShare, 1)
	bounds.OrNone(&c.KeepFor, 5*time.Minute)
	if c.Clock == nil {
		c.Clock = clock.System()
	}
}

// PipelineConfig configures NewPipeline. Fields that are zero have their defaults.
type PipelineConfig struct {
	// Kafka are options for the connection to the brokers.
	Kafka []processors.Option
	// Message makes the message of a request (default: a user message with the content of the last of data.inputs.messages and the
	// caller's UserID). The pipeline sets the message's session, timestamp and request id.
	Message func(Request) (topics.Message, error)
	// Lookback is how long after its beginning a turn can be read again (default 1 h, at least 1 ms). The turns of that time are
	// indexed in memory; when Run starts, it reads the topics of events, messages, outputs and batches from that time on, once.
	Lookback time.Duration
	// IndexedTurns is how many turns are indexed (default 250,000, at least 1), of one session at most 256. Each takes about 500 bytes.
	// The index forgets the turn that has had no record for the longest time; it can then not be read again.
	IndexedTurns int
	// Silence is for how long a request waits for an event (default 30 min, at least 1 ms). It does not end the turn: that of the fold
	// group does, which should not be longer.
	Silence time.Duration
	// Grace is how long to wait for the terminal record of a run that has paused (default 5 s, at least 1 ms).
	Grace time.Duration
	// WaitingBytes is how many bytes of events are queued for one request (default 8 MiB, at least 1). The response to a slower client
	// ends with an error; the client can resume.
	WaitingBytes int
	// Gates makes requests that answer interaction requests of a paused turn decide their gates (default: they are ordinary messages).
	// Use it together with the option of the same name of the fold group and with processors of gates. The catalog of the topics needs
	// topics.WithGates. Set Lookback longer than decisions can take: older turns cannot be continued.
	//
	// A turn with steps does not pause: its stream stays open while a call waits for approval, and the ID of the interaction request is
	// the gate's. A client that reads JSON gets its answer only after the gate has ended.
	//
	// See Answers in the package documentation.
	Gates bool
	// RefuseWhilePaused answers a request that is no answer with 409 while a gate of a turn of its session is open (default: its message
	// waits for the end of that turn, or begins another one, as the pipeline decides). It needs Gates. A message that another process
	// has accepted a moment before, whose gate is not open yet, is not seen.
	RefuseWhilePaused bool
	// Clock is for timestamps and for the times above (default: the system's).
	Clock processors.Clock

	gap time.Duration // how long records of a turn may be missing
}

func (c *PipelineConfig) complete(check *bounds.Check) {
	if c.Message == nil {
		c.Message = lastMessage
	}
	bounds.AtLeast(check, "Lookback", &c.Lookback, time.Hour, time.Millisecond)
	bounds.AtLeast(check, "IndexedTurns", &c.IndexedTurns, 250_000, 1)
	bounds.AtLeast(check, "Silence", &c.Silence, 30*time.Minute, time.Millisecond)
	bounds.AtLeast(check, "Grace", &c.Grace, 5*time.Second, time.Millisecond)
	bounds.AtLeast(check, "WaitingBytes", &c.WaitingBytes, 8<<20, 1)
	bounds.AtLeast(check, "gap", &c.gap, 30*time.Second, 1)
	if c.RefuseWhilePaused && !c.Gates {
		check.Wrong("RefuseWhilePaused", "needs Gates")
	}
	if c.Clock == nil {
		c.Clock = clock.System()
	}
}
