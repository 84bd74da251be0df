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

// Pipeline is the Agent of a pipeline on Kafka: it writes a request's message to {agent}-message-input and reads the events
// of its turn from {agent}-agent-events. One follower serves all requests of a process. Every process reads all events, so
// a client can send its requests to any of them.
//
// The producer of the events uses the message's metadata.request_id as turn id, or sets the request of one of the turn's
// records to the enriched message, whose latest_input contains the id. A turn continues when its client disconnects. A
// request that is repeated with its Idempotency-Key is the same turn. The events of a turn can be read again within
// WithLookback.
type Pipeline struct {
	topics   topics.Catalog
	to       processors.Publisher
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

// PipelineOption configures NewPipeline.
type PipelineOption func(*pipelineRules)

// WithKafka adds options for the connection to the brokers.
func WithKafka(opts ...processors.Option) PipelineOption {
	return func(r *pipelineRules) { r.kafka = append(r.kafka, opts...) }
}

// WithMessage sets the function that makes the message of a request (default: a user message with the content of the last
// of data.inputs.messages and the caller's UserID). The pipeline sets the message's session, timestamp and request id.
func WithMessage(message func(Request) (topics.Message, error)) PipelineOption {
	return func(r *pipelineRules) { r.message = message }
}

// WithLookback sets how far back a turn's events are searched when the turn is read again (default 1 h, at least 1 ms). The
// session's whole partition is read from that time on, before the response begins. A turn that began earlier cannot be read
// again.
func WithLookback(d time.Duration) PipelineOption { return func(r *pipelineRules) { r.lookback = d } }

// WithSilence sets after how long without an event the turn is answered as expired (default 30 min, at least 1 ms).
func WithSilence(d time.Duration) PipelineOption { return func(r *pipelineRules) { r.silence = d } }

// WithGrace sets how long to wait for the terminal record after a done event (default 5 s, at least 1 ms).
func WithGrace(d time.Duration) PipelineOption { return func(r *pipelineRules) { r.grace = d } }

// WithWaitingBytes sets how many bytes of events are queued for one request (default 8 MiB, at least 1). The response to a
// slower client ends with an error; the client can resume.
func WithWaitingBytes(n int) PipelineOption { return func(r *pipelineRules) { r.waiting = n } }

// WithPipelineClock sets the clock for timestamps and for the times above (default: the system clock).
func WithPipelineClock(c processors.Clock) PipelineOption {
	return func(r *pipelineRules) { r.clock = c }
}

// NewPipeline returns the agent of a pipeline. It answers requests while Run is running. The caller closes the publisher
// after Run has returned. NewPipeline fails with ErrDoor if an argument or an option is invalid.
func NewPipeline(agent string, brokers []string, to processors.Publisher, opts ...PipelineOption) (*Pipeline, error) {
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
		return nil, fmt.Errorf("%w: a pipeline needs a publisher, a message function, a clock, durations of at least 1 ms, "+
			"and limits above zero", ErrDoor)
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

// Run reads events until ctx is done, and then returns nil. Call it once.
func (p *Pipeline) Run(ctx context.Context) error { return p.follower.Run(ctx) }

// Ready returns a channel that is closed when Run reads every partition. Earlier requests get 503.
func (p *Pipeline) Ready() <-chan struct{} { return p.follower.Ready() }

var errStarting = &Error{Status: http.StatusServiceUnavailable, Code: "starting", Text: "the service is starting"}

// publishTimeout is how long a request waits for the brokers' acknowledgement.
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
		s.replayFrom(ctx, p.rules.clock.Now().Add(-p.rules.lookback)) // the turn may have begun with an earlier request
	}
	// A client that disconnects does not cancel the write, because the message may already be in Kafka.
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

func (p *Pipeline) open(session, turn string) *pipelineStream {
	return &pipelineStream{
		pipeline: p, session: session, request: turn, box: p.hub.open(session), touched: p.rules.clock.Now(),
	}
}

// derived returns an id that depends only on parts.
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
	at := topics.Timestamp(p.rules.clock.Now())
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

// lastMessage returns the last of the request's messages. The earlier ones are in the pipeline's history.
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
