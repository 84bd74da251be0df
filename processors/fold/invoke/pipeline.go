package invoke

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// Publisher writes records and returns nil when the brokers have acknowledged all of them. *processors.Publisher is
// one.
type Publisher interface {
	Publish(ctx context.Context, records ...processors.Outbound) error
}

// Pipeline is the Agent that stands on Kafka: a request's message goes to {agent}-message-input, and the events of its
// turn come back on {agent}-agent-events. One reader serves all requests of a process, and every process reads, so that
// it does not matter which one a client asks.
//
// Whoever writes the events names the turn by the metadata.request_id of its message, or puts the enriched message into
// a record's request, whose latest_input has it. A turn goes on when its client has gone. With an Idempotency-Key a
// request that is repeated is the same turn; the events of a turn can be read again as far back as WithLookback says.
type Pipeline struct {
	topics   topics.Catalog
	to       Publisher
	rules    pipelineRules
	hub      *hub
	follower *processors.Follower
	replays  chan struct{}
}

type pipelineRules struct {
	kafka    []processors.Option
	message  func(Request) (topics.Message, error)
	lookback time.Duration
	silence  time.Duration
	grace    time.Duration
	gap      time.Duration
	waiting  int
	replays  int
	clock    processors.Clock
}

// PipelineOption changes what NewPipeline makes.
type PipelineOption func(*pipelineRules)

// WithKafka sets how the brokers are reached.
func WithKafka(opts ...processors.Option) PipelineOption {
	return func(r *pipelineRules) { r.kafka = append(r.kafka, opts...) }
}

// WithMessage sets what message a request becomes; its session, timestamp and request id are set by the pipeline.
// Default: the content of the last of data.inputs.messages, for the caller's user.
func WithMessage(message func(Request) (topics.Message, error)) PipelineOption {
	return func(r *pipelineRules) { r.message = message }
}

// WithLookback sets how far back a turn's events are looked for when it is read again (default 1 h): the whole
// partition of the session from then on is read for it, before the response begins. A turn that began earlier cannot be
// read again.
func WithLookback(d time.Duration) PipelineOption { return func(r *pipelineRules) { r.lookback = d } }

// WithSilence sets after how long without an event a request gives up on its turn (default 30 min).
func WithSilence(d time.Duration) PipelineOption { return func(r *pipelineRules) { r.silence = d } }

// WithGrace sets how long after a done event the terminal record is waited for (default 5 s).
func WithGrace(d time.Duration) PipelineOption { return func(r *pipelineRules) { r.grace = d } }

// WithWaitingBytes sets how many bytes of events may wait for one request (default 8 MiB); a client that is slower is
// cut off, and may read on.
func WithWaitingBytes(n int) PipelineOption { return func(r *pipelineRules) { r.waiting = n } }

// WithPipelineClock sets the clock that timestamps and these times go by (default: the system's).
func WithPipelineClock(c processors.Clock) PipelineOption {
	return func(r *pipelineRules) { r.clock = c }
}

// NewPipeline makes the agent of a pipeline. Run has to run for it to answer; the publisher is the caller's.
func NewPipeline(agent string, brokers []string, to Publisher, opts ...PipelineOption) (*Pipeline, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDoor, err)
	}
	r := pipelineRules{
		message: lastMessage, lookback: time.Hour, silence: 30 * time.Minute, grace: 5 * time.Second, gap: 30 * time.Second,
		waiting: 8 << 20, replays: 8, clock: clock.System(),
	}
	for _, opt := range opts {
		opt(&r)
	}
	if to == nil || r.message == nil || r.clock == nil || r.waiting < 1 ||
		min(r.lookback, r.silence, r.grace) < time.Millisecond {
		return nil, fmt.Errorf("%w: a pipeline needs a publisher, a clock, times and limits above zero", ErrDoor)
	}
	p := &Pipeline{
		topics: catalog, to: to, rules: r, replays: make(chan struct{}, r.replays),
		hub: &hub{
			events: catalog.AgentEvents, outputs: catalog.MessageOutput, limit: r.waiting,
			sessions: map[string]map[*inbox]struct{}{},
		},
	}
	names := []string{catalog.AgentEvents.Name(), catalog.MessageOutput.Name()}
	if p.follower, err = processors.NewFollower(brokers, names, p.hub.handle, r.kafka...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDoor, err)
	}
	return p, nil
}

// Run reads events until ctx ends, and then returns nil. It is called once.
func (p *Pipeline) Run(ctx context.Context) error { return p.follower.Run(ctx) }

// Ready is closed when Run reads every partition. Requests before that get 503.
func (p *Pipeline) Ready() <-chan struct{} { return p.follower.Ready() }

var errStarting = &Error{Status: http.StatusServiceUnavailable, Code: "starting", Text: "the service is starting"}

// publishTimeout is how long a request waits for the brokers.
const publishTimeout = 30 * time.Second

// Invoke implements Agent.
func (p *Pipeline) Invoke(ctx context.Context, r Request) (Stream, error) {
	select {
	case <-p.follower.Ready():
	default:
		return nil, errStarting
	}
	id := r.Trace.TraceID + "-" + r.Trace.SpanID
	if r.IdempotencyKey != "" {
		id = derived(p.topics.Agent, r.SessionID, r.IdempotencyKey)
	}
	out, err := p.outbound(r, id)
	if err != nil {
		return nil, err
	}
	s := p.open(r.SessionID, id)
	if r.IdempotencyKey != "" {
		s.replayFrom(ctx, p.rules.clock.Now().Add(-p.rules.lookback)) // the turn may have run before
	}
	// A client that goes away does not stop it: what it asked for may be half done.
	publish, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer cancel()
	if err := p.to.Publish(publish, out); err != nil {
		_ = s.Close()
		if errors.Is(err, processors.ErrTooLarge) {
			return nil, &Error{Status: http.StatusRequestEntityTooLarge, Type: TypeUnknown, Text: "the message is too large"}
		}
		return nil, fmt.Errorf("invoke: publish: %w", err)
	}
	if err := s.prime(ctx, EventID{}); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// Resume implements Resumer.
func (p *Pipeline) Resume(ctx context.Context, r Request, last EventID) (Stream, error) {
	select {
	case <-p.follower.Ready():
	default:
		return nil, errStarting
	}
	if last.Attempt < 1 {
		return nil, ErrGone // no event has that id
	}
	s := p.open(r.SessionID, last.Turn)
	s.sequence.attempt = int64(min(last.Attempt, 1<<62))
	s.replayFrom(ctx, p.rules.clock.Now().Add(-p.rules.lookback))
	if err := s.prime(ctx, last); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (p *Pipeline) open(session, turn string) *pipelineStream {
	return &pipelineStream{
		pipeline: p, session: session, request: turn, box: p.hub.open(session), touched: p.rules.clock.Now(),
	}
}

// derived is an id that is the same for the same parts.
func derived(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (p *Pipeline) outbound(r Request, id string) (processors.Outbound, error) {
	m, err := p.rules.message(r)
	if err != nil {
		return processors.Outbound{}, err
	}
	at := instant(p.rules.clock.Now())
	m.SessionID, m.Timestamp = &r.SessionID, &at
	metadata := newObject()
	if kindOf(m.Metadata) == '{' {
		eachMember(m.Metadata, func(name string, value topics.Raw) bool {
			if name != "request_id" {
				metadata = metadata.with(name, value)
			}
			return true
		})
	}
	m.Metadata = topics.Raw(metadata.text("request_id", id).value())
	out, err := processors.OutboundOf(p.topics.MessageInput, r.SessionID, m, id+"/message")
	if err != nil {
		return processors.Outbound{}, fmt.Errorf("invoke: %w", err)
	}
	return out, nil
}

// lastMessage is the last of the request's messages: the pipeline keeps the conversation itself.
func lastMessage(r Request) (topics.Message, error) {
	messages := r.Messages()
	if len(messages) == 0 {
		return topics.Message{}, &Error{
			Status: http.StatusUnprocessableEntity, Type: TypeUnknown, Text: "data.inputs.messages: want at least one message",
		}
	}
	content := member(messages[len(messages)-1], "content")
	if content == nil {
		return topics.Message{}, &Error{
			Status: http.StatusUnprocessableEntity, Type: TypeUnknown, Text: "data.inputs.messages: the last has no content",
		}
	}
	role := "user"
	m := topics.Message{Role: &role, Content: topics.Raw(content)}
	if r.Caller.UserID != "" {
		m.UserID = &r.Caller.UserID
	}
	return m, nil
}

// instant is a time as the pipeline's records have it.
func instant(t time.Time) string {
	t = t.UTC().Truncate(time.Millisecond)
	if t.Nanosecond() == 0 {
		return t.Format("2006-01-02T15:04:05Z")
	}
	return t.Format("2006-01-02T15:04:05.000Z")
}
