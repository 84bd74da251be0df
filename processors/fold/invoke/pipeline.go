package invoke

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/bounds"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// Pipeline is the Agent of a pipeline on Kafka: it writes a request's message to {agent}-message-input and reads the events
// of its turn from {agent}-agent-events. One follower serves all requests of a process. Every process reads all events, so
// a client can send its requests to any of them. See the index of turns in the package documentation.
//
// The events are those of the turn group and of its model's workers: the catalog needs topics.WithEvents. The fold group must run, because
// it decides how a turn ends; a turn whose last event has no batch after 30 s is answered with the error no_batch. With another
// producer, it uses the message's metadata.request_id as turn id, or sets the request of one of the turn's
// records to the enriched message, whose latest_input contains the id. A turn continues when its client disconnects. A
// request that is repeated with its Idempotency-Key is the same turn. The events of a turn can be read again within
// PipelineConfig.Lookback.
type Pipeline struct {
	topics   topics.Catalog
	to       processors.Publisher
	config   PipelineConfig
	hub      *hub
	follower follower
	slots    *entrance.Slots // of replays
	logger   *zap.Logger
	ready    chan struct{} // closed when the index is loaded
}

// NewPipeline returns the agent of a pipeline. It answers requests while Run is running. The caller closes the publisher
// after Run has returned. NewPipeline fails with ErrConfig if an argument or a field is invalid.
func NewPipeline(agent string, brokers []string, to processors.Publisher, c PipelineConfig) (*Pipeline, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	var check bounds.Check
	if to == nil {
		check.Wrong("publisher", "is nil")
	}
	c.complete(&check)
	if err := check.Err(ErrConfig); err != nil {
		return nil, err
	}
	p := &Pipeline{
		topics: catalog, to: to, config: c, slots: entrance.NewSlots(replaySlots), ready: make(chan struct{}),
		hub: newHub(catalog, c),
	}
	if _, p.logger, err = processors.ClientConfig(brokers, c.Kafka...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if p.follower, err = processors.NewFollower(brokers, p.followed(), p.hub.handle, c.Kafka...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return p, nil
}

// followed returns the topics from which the index is made.
func (p *Pipeline) followed() []string {
	names := []string{
		p.topics.AgentEvents.Name(), p.topics.MessageInput.Name(), p.topics.MessageOutput.Name(), p.topics.BatchMessages.Name(),
	}
	if p.config.Gates {
		names = append(names, p.topics.GateRequests.Name(), p.topics.GateOutcomes.Name())
	}
	return names
}

// Run reads records until ctx is done, and then returns nil. It first indexes the turns since PipelineConfig.Lookback. Call it once.
func (p *Pipeline) Run(ctx context.Context) error {
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.Go(func() error { return p.follower.Run(ctx) })
	tasks.Go(func() error { return p.load(ctx) })
	return tasks.Wait()
}

// Ready returns a channel that is closed when Run reads every partition and has indexed the turns since PipelineConfig.Lookback. Earlier
// requests get 503.
func (p *Pipeline) Ready() <-chan struct{} { return p.ready }

func (p *Pipeline) isReady() bool {
	select {
	case <-p.ready:
		return true
	default:
		return false
	}
}

var (
	errStarting = &Error{Status: http.StatusServiceUnavailable, Code: "starting", Text: "the service is starting"}
	errWaits    = &Error{
		Status: http.StatusConflict, Type: TypeUnknown, Code: "paused", Text: "a turn of the session is paused; answer it first",
	}
)

// publishTimeout is how long a request waits for the brokers' acknowledgement.
const publishTimeout = 30 * time.Second

// Invoke implements Agent.
func (p *Pipeline) Invoke(ctx context.Context, r Request) (Stream, error) {
	if !p.isReady() {
		return nil, errStarting
	}
	if p.config.Gates {
		switch s, err := p.answer(ctx, r); {
		case err != nil:
			return nil, err
		case s != nil:
			return s, nil
		case !r.Caller.Can(auth.Write): // the door admits callers who may only answer
			return nil, errForbidden
		}
	}
	id := r.Trace.TraceID + "-" + r.Trace.SpanID
	switch {
	case r.IdempotencyKey != "":
		id = derived(p.topics.Agent, r.SessionID, r.IdempotencyKey)
	case r.Trace == (Trace{}): // of the program itself: nothing else tells two requests of a session apart
		id = rand.Text()
	}
	out, err := p.outbound(r, id)
	if err != nil {
		return nil, err
	}
	s, known := p.open(r, id)
	s.waits = p.hub.waits(r.SessionID)
	switch {
	case known != nil: // the request was accepted before
		s.waits = ""
		err = s.begin(ctx, known, EventID{})
	case p.config.RefuseWhilePaused && s.waits != "":
		err = errWaits
	default:
		err = p.publish(ctx, r.SessionID, id, out)
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// publish writes a request's message. A client that disconnects does not cancel the write, because the message may already
// be in Kafka.
func (p *Pipeline) publish(ctx context.Context, session, id string, out processors.Outbound) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer cancel()
	switch err := p.to.Publish(ctx, out); {
	case errors.Is(err, processors.ErrTooLarge):
		return &Error{Status: http.StatusRequestEntityTooLarge, Type: TypeUnknown, Text: "the message is too large"}
	case err != nil:
		return fmt.Errorf("invoke: publish: %w", err)
	}
	p.hub.accepted(session, id)
	return nil
}

// open returns the stream of a turn, and what the index has about the turn: nil if it has nothing.
func (p *Pipeline) open(r Request, turn string) (*pipelineStream, *indexedTurn) {
	box, known := p.hub.open(r.SessionID, turn)
	s := &pipelineStream{
		pipeline: p, session: r.SessionID, caller: r.callerKey, request: turn, box: box, touched: p.config.Clock.Now(),
		from: section{partition: -1}, first: -1, sequence: sequence{resumes: p.config.Gates},
	}
	if p.config.Gates {
		s.pauses = newPauses(turn)
	}
	return s, known
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
	m, err := p.config.Message(r)
	if err != nil {
		return processors.Outbound{}, err
	}
	at := topics.Timestamp(p.config.Clock.Now())
	m.SessionID, m.Timestamp = &r.SessionID, &at
	metadata := newObject()
	if kindOf(m.Metadata) == '{' {
		eachMember(m.Metadata, func(name string, value topics.Raw) bool {
			if name != "request_id" && !topics.Reserved(name) {
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
